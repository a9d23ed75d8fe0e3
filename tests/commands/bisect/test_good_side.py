"""The good side: it runs once for all candidates, and what it cannot measure ends the bisection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fixtures.commands.bisect.steps import Criterion, Step, StepOutcome, try_candidate
from fixtures.commands.compare import side
from fixtures.commands.compare.environments import InstallationError
from fixtures.commands.compare.requirements import Requirements
from fixtures.commands.compare.side import running_side
from fixtures.commands.errors import CommandError
from fixtures.metrics.limits import Limits
from fixtures.settings import Settings
from tests.support.fake_side import in_process
from tests.support.scenarios import find_scenario

KINDS = {"diffusers==0.40.0": "sound", "diffusers==0.41.0": "more", "diffusers==0.42.0": "broken"}


@contextmanager
def environment(requirements: Requirements) -> Iterator[Path]:
    """There are no other releases than these."""
    release = requirements.texts[0]
    if release not in KINDS:
        raise InstallationError(f"{requirements} cannot be installed: no such release")
    yield Path(KINDS[release])


@contextmanager
def good_side(release: str) -> Iterator[Callable[[str], Step]]:
    """What tests candidates, each a release, against this one."""
    scenarios = [find_scenario("storybook", "bf16")]
    with running_side("base", Requirements.parse([release]), Settings()) as good:

        def test(candidate: str) -> Step:
            requirements = Requirements.parse([candidate])
            step = try_candidate(
                good, requirements, Criterion("counts", "worse"), scenarios, Limits()
            )
            assert good.worker.observed == ["storybook-bf16"]  # type: ignore[attr-defined]
            return step

        yield test


@pytest.fixture(autouse=True)
def _fake_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    in_process(monkeypatch)
    monkeypatch.setattr(side, "environment", environment)


def test_candidates_are_compared_with_a_good_side_that_is_observed_once() -> None:
    with good_side("diffusers==0.40.0") as test:
        same, more = test("diffusers==0.40.0"), test("diffusers==0.41.0")
    assert same.outcome is StepOutcome.GOOD
    assert more.outcome is StepOutcome.BAD
    assert more.figures == "storybook-bf16 operations 14 -> 15 (+7.1 %)"


def test_a_candidate_that_cannot_be_installed_is_skipped() -> None:
    with good_side("diffusers==0.40.0") as test:
        test("diffusers==0.41.0")
        step = test("diffusers==0.43.0")
    assert step.outcome is StepOutcome.SKIPPED
    assert "cannot be installed: no such release" in step.figures


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("diffusers==0.42.0", "the good one cannot be measured: storybook-bf16: not compared: on"),
        ("diffusers==0.43.0", "cannot be installed: no such release"),
    ],
)
def test_a_good_side_that_fails_ends_the_bisection(release: str, words: str) -> None:
    with pytest.raises(CommandError, match=words), good_side(release) as test:
        test("diffusers==0.40.0")
