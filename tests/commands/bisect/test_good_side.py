"""The good side: it runs once for all candidates, and what it cannot measure ends the bisection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures.commands.bisect.good_side import GoodSide
from fixtures.commands.bisect.halving import StepOutcome
from fixtures.commands.bisect.steps import Criterion
from fixtures.commands.compare.environments import Environment, Environments
from fixtures.commands.compare.installer import InstallationError
from fixtures.commands.compare.requirements import Requirements
from fixtures.commands.errors import CommandError
from fixtures.scenarios import find_scenario
from fixtures.settings import Settings
from fixtures.verdicts.limits import Limits
from tests.support.fake_side import COMMAND

KINDS = {"diffusers==0.40.0": "sound", "diffusers==0.41.0": "more", "diffusers==0.42.0": "broken"}
FOUND = [find_scenario("storybook", "bf16")]


@dataclass(frozen=True)
class FakeEnvironment(Environment):
    """A fake side, by the release of diffusers."""

    @property
    def command(self) -> list[str]:
        return [*COMMAND, KINDS[self.requirements.split()[0]]]


class FakeEnvironments(Environments):
    """Has no other releases than these."""

    def prepare(self, requirements: Requirements) -> Environment:
        if str(requirements).split()[0] not in KINDS:
            raise InstallationError(f"{requirements} cannot be installed: no such release")
        return FakeEnvironment(Path("python"), str(requirements))


def good_side(folder: Path, release: str) -> GoodSide:
    question, installed = Criterion("counts", "worse"), Requirements.parse([release])
    environments = FakeEnvironments(folder)
    return GoodSide(installed, question, FOUND, Settings(), Limits(), folder, environments)


@pytest.fixture
def good(tmp_path: Path) -> Iterator[GoodSide]:
    side = good_side(tmp_path, "diffusers==0.40.0")
    with closing(side):
        yield side


def test_candidates_are_compared_with_one_process_of_the_good_side(good: GoodSide) -> None:
    candidates = ("diffusers==0.40.0", "diffusers==0.41.0")
    same, more = (good.test(name, Requirements.parse([name])) for name in candidates)
    assert same.outcome is StepOutcome.GOOD
    assert more.outcome is StepOutcome.BAD
    assert more.figures == "storybook-bf16 operations 14 -> 15 (+7.1 %)"
    assert more.environment == "diffusers==0.41.0 transformers==5.23.0"
    assert len(good.running) == 1


def test_a_candidate_that_cannot_be_installed_is_skipped(good: GoodSide) -> None:
    step = good.test("0.43.0", Requirements.parse(["diffusers==0.43.0"]))
    assert step.outcome is StepOutcome.SKIPPED
    assert "cannot be installed: no such release" in step.figures


def test_a_good_side_that_fails_ends_the_bisection(tmp_path: Path) -> None:
    with closing(good_side(tmp_path, "diffusers==0.42.0")) as broken:
        words = "the good one cannot be measured: storybook-bf16: not compared: on base"
        with pytest.raises(CommandError, match=words):
            broken.test("0.40.0", Requirements.parse(["diffusers==0.40.0"]))
