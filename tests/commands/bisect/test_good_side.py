"""The good side: it runs once for all candidates, and what it cannot measure ends the bisection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from fixtures.commands.bisect.halving import StepOutcome
from fixtures.commands.bisect.steps import Criterion, GoodSide
from fixtures.commands.compare import side
from fixtures.commands.compare.environments import InstallationError
from fixtures.commands.compare.requirements import Requirements
from fixtures.commands.errors import CommandError
from fixtures.scenarios import find_scenario
from fixtures.settings import Settings
from fixtures.verdicts.limits import Limits
from tests.support.fake_side import in_process

KINDS = {"diffusers==0.40.0": "sound", "diffusers==0.41.0": "more", "diffusers==0.42.0": "broken"}


@contextmanager
def environment(requirements: Requirements) -> Iterator[Path]:
    """There are no other releases than these."""
    release = requirements.texts[0]
    if release not in KINDS:
        raise InstallationError(f"{requirements} cannot be installed: no such release")
    yield Path(KINDS[release])


def good_side(release: str) -> GoodSide:
    return GoodSide(
        Requirements.parse([release]),
        Criterion("counts", "worse"),
        [find_scenario("storybook", "bf16")],
        Settings(),
        Limits(),
    )


@pytest.fixture
def good(monkeypatch: pytest.MonkeyPatch) -> Iterator[GoodSide]:
    in_process(monkeypatch)
    monkeypatch.setattr(side, "environment", environment)
    with closing(good_side("diffusers==0.40.0")) as made:
        yield made


def test_candidates_are_compared_with_one_process_of_the_good_side(good: GoodSide) -> None:
    candidates = ("diffusers==0.40.0", "diffusers==0.41.0")
    same, more = (good.test(Requirements.parse([name])) for name in candidates)
    assert same.outcome is StepOutcome.GOOD
    assert more.outcome is StepOutcome.BAD
    assert more.figures == "storybook-bf16 operations 14 -> 15 (+7.1 %)"
    [running] = good._running.values()
    assert running.worker.observed == ["storybook-bf16"]  # type: ignore[attr-defined]


def test_a_candidate_that_cannot_be_installed_is_skipped(good: GoodSide) -> None:
    step = good.test(Requirements.parse(["diffusers==0.43.0"]))
    assert step.outcome is StepOutcome.SKIPPED
    assert "cannot be installed: no such release" in step.figures


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("diffusers==0.42.0", "the good one cannot be measured: storybook-bf16: not compared: on"),
        ("diffusers==0.43.0", "cannot be installed: no such release"),
    ],
)
def test_a_good_side_that_fails_ends_the_bisection(
    good: GoodSide, release: str, words: str
) -> None:
    with closing(good_side(release)) as broken, pytest.raises(CommandError, match=words):
        broken.test(Requirements.parse(["diffusers==0.40.0"]))
