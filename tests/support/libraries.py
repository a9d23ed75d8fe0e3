"""Techniques whose library is not installed are skipped, with the command that installs it."""

from __future__ import annotations

import pytest

from fixtures.catalogue.techniques import Technique


def skipped_without_libraries(technique: Technique) -> pytest.MarkDecorator:
    """The mark of a parameter that applies the technique."""
    missing = technique.missing_libraries
    return pytest.mark.skipif(bool(missing), reason=" and ".join(map(str, missing)))
