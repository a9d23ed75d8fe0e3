"""Real sides of this environment: equal to themselves, and found out where one does more work."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures.commands.compare import __main__ as command
from fixtures.commands.compare.comparing import Compared, Comparing
from fixtures.commands.compare.environments import Environment, Environments
from fixtures.commands.compare.remote_side import RemoteSide
from fixtures.commands.compare.requirements import Requirements
from fixtures.measuring.rounds import Plan
from fixtures.measuring.sampler import across_environments
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.scenarios import find_scenario
from fixtures.settings import Settings
from fixtures.verdicts.limits import Limits

SDPA = find_scenario("storybook", "sdpa")
EXACT = ("peak_memory", "counts", "images")
SOUND = [sys.executable, "-m", "fixtures.commands.compare.side_server"]
PATCHED = [sys.executable, "-m", "tests.support.patched_side"]


@dataclass
class Sides:
    """Two sound sides, one whose denoiser copies its input, and one whose denoiser runs twice."""

    base: RemoteSide
    head: RemoteSide
    copying: RemoteSide
    twice: RemoteSide


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    settings = Settings(device="cpu")
    folder = tmp_path_factory.mktemp("sides")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        made = Sides(
            RemoteSide("base", SOUND, settings, folder),
            RemoteSide("head", SOUND, settings, folder),
            RemoteSide("head", [*PATCHED, "copy"], settings, folder / "copy"),
            RemoteSide("head", [*PATCHED, "twice"], settings, folder / "twice"),
        )
        for side in (made.base, made.head, made.copying, made.twice):
            stack.callback(side.close)
        yield made


def compared(base: RemoteSide, head: RemoteSide, metrics: Sequence[str]) -> Compared:
    limits = Limits(exact=True)
    return Comparing(base, head, metrics, limits, show=lambda text: None).run([SDPA])


def test_a_side_is_equal_to_itself_in_every_exact_figure(sides: Sides) -> None:
    found = compared(sides.base, sides.head, EXACT)
    assert [one.verdict.outcome for one in found.figures] == [Outcome.PASS] * 3
    assert all(one.base == one.head for one in found.figures)


def test_a_copy_of_the_denoisers_input_is_found(sides: Sides) -> None:
    found = compared(sides.base, sides.copying, EXACT)
    (figure,) = found.failed
    assert figure.verdict.metric == "operations"
    assert figure.note == "clone +20"
    assert figure.head == (figure.base or 0) + 20


@pytest.mark.parametrize(
    ("shares_core", "references"),
    [
        (False, 2),
        pytest.param(
            True,
            1,
            marks=pytest.mark.skipif(
                not hasattr(os, "sched_setaffinity"), reason="processes cannot be pinned here"
            ),
        ),
    ],
)
def test_each_side_is_timed_with_its_own_packages(
    sides: Sides, shares_core: bool, references: int
) -> None:
    for base, head, sign in ((sides.head, sides.twice, 1), (sides.twice, sides.head, -1)):
        pair = base.timed(SDPA), head.timed(SDPA)
        timing = across_environments(SDPA, Plan(2, 1), *pair, shares_core=shares_core)
        assert [len(group.reference_s) for group in timing.groups] == [references] * 2
        assert 0 < timing.evidence.cpu_share <= 1
        assert sign * timing.sample.log_ratio > math.log(1.3)


def test_a_scenario_that_cannot_be_timed_is_its_sides_failure_and_the_side_responds_again(
    sides: Sides,
) -> None:
    offload = find_scenario("storybook", "sequential_cpu_offload")
    base, head = sides.base.timed(offload), sides.head.timed(offload)
    with pytest.raises(ScenarioError) as caught:
        across_environments(offload, Plan(groups=1, pairs=1), base, head, shares_core=False)
    assert caught.value.side == "base"
    assert caught.value.scenario == offload.id
    assert sides.base.recording(SDPA).failure is None


def test_the_command_says_its_verdict_by_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def prepare(self: Environments, requirements: Requirements) -> Environment:
        return Environment(Path(sys.executable), str(requirements))

    monkeypatch.setattr(Environments, "prepare", prepare)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    arguments = ["--base", "diffusers==0.42.1", "--head", "diffusers==0.42.1"]
    options = ["--perf-device", "cpu", "-k", "[storybook-sdpa]", "--metric", "counts"]
    report = ["--perf-report", str(tmp_path / "report")]
    assert command.main([*arguments, *options, *report]) == 0
    said = capsys.readouterr().out
    assert "1 scenario compared: 0 findings" in said
    assert (tmp_path / "report" / "report.html").is_file()
    assert command.main([*arguments, "-k", "nothing"]) == 2
    assert "no scenario is selected by" in capsys.readouterr().err
    assert command.main([*arguments, "-k", "not a name"]) == 2
    assert "Wrong expression passed to '-k'" in capsys.readouterr().err
    assert command.main([*arguments, *options, "--perf-device", "gpu"]) == 2
    assert "--perf-device 'gpu' is unknown" in capsys.readouterr().err
