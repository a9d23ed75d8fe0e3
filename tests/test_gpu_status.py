"""What docs/gpu-status.md says never ran is still there."""

from __future__ import annotations

import re

import pytest

from fixtures.settings import REPOSITORY

PAGE = (REPOSITORY / "docs" / "gpu-status.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(fixtures/[^`]+)` \| `(.+?)` \| ", re.MULTILINE)
NEVER_RAN = ROW.findall(PAGE)


def test_there_is_a_list() -> None:
    assert len(NEVER_RAN) > 5


@pytest.mark.parametrize(("file", "code"), NEVER_RAN)
def test_code_that_never_ran_is_in_its_file(file: str, code: str) -> None:
    assert code in (REPOSITORY / file).read_text(encoding="utf-8")
