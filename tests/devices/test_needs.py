"""xFormers says once for each technique that needs it that it does not run, and nowhere else."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from pathlib import Path

import pytest

from fixtures.devices.needs import XFORMERS_WARNING
from tests.support import fake_bench
from tests.support.running import run_here


def test_a_run_keeps_the_warning_about_extensions_and_no_other_out_of_failures(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger("xformers")
    for quiet in list(logger.filters):
        logger.removeFilter(quiet)
    run_here(*fake_bench.OPTIONS, "--collect-only", "-q", "-k", "storybook-fp32")
    assert len(logger.filters) == 1
    logger.warning("WARNING[XFORMERS]: %s", f"{XFORMERS_WARNING}. xFormers was built for:")
    logger.warning("attention is slow here")
    assert [record.getMessage() for record in caplog.records] == ["attention is slow here"]


def test_the_warning_is_the_one_that_is_logged() -> None:
    spec = find_spec("xformers")
    if spec is None or spec.origin is None:
        pytest.skip("xFormers is not installed")
    assert XFORMERS_WARNING in Path(spec.origin).with_name("_cpp_lib.py").read_text("utf-8")
