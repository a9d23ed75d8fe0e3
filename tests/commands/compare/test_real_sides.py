"""Real sides of this environment: equal to themselves, and red where one does more work."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fixtures.compare import __main__ as command
from fixtures.compare.environments import Environment, Environments
from fixtures.compare.process import Side
from fixtures.compare.requirements import Requirements
from fixtures.compare.rounds_in_turns import look_in_turns
from fixtures.compare.run import Compared, Comparing
from fixtures.measurement import ScenarioError
from fixtures.rounds import Plan
from fixtures.scenarios import scenarios
from fixtures.settings import Settings
from fixtures.verdicts import Outcome

FOUND = [one for one in scenarios(["storybook"]) if one.technique.id == "sdpa"]
SOUND = [sys.executable, "-m", "fixtures.compare.side"]
PATCHED = """
import sys
from diffusers import UNet2DConditionModel
from fixtures.compare.side import main
forward = UNet2DConditionModel.forward
def patched(self, sample, *args, **kwargs):
    return forward(self, sample.clone(), *args, **kwargs)
UNet2DConditionModel.forward = patched
sys.exit(main())
"""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side, Side]]:
    """Two sound sides, and one whose denoiser copies its input."""
    folder = tmp_path_factory.mktemp("sides")
    commands = (SOUND, SOUND, [sys.executable, "-c", PATCHED])
    made = [
        Side(name, how, Settings(device="cpu"), folder)
        for name, how in zip(("base", "head", "patched"), commands, strict=True)
    ]
    yield made[0], made[1], made[2]
    for side in made:
        side.close()


def compared(base: Side, head: Side, metrics: Sequence[str]) -> Compared:
    return Comparing(base, head, metrics=metrics, show=lambda text: None).run(FOUND)


EXACT = ("peak_memory", "counters", "pictures")


def test_a_side_is_equal_to_itself_in_every_exact_figure(sides: tuple[Side, Side, Side]) -> None:
    found = compared(sides[0], sides[1], EXACT)
    assert [row.verdict.outcome for row in found.rows] == [Outcome.PASS] * 3
    assert all(row.base == row.head for row in found.rows)


def test_a_copy_of_the_denoisers_input_is_found(sides: tuple[Side, Side, Side]) -> None:
    found = compared(sides[0], sides[2], EXACT)
    (row,) = found.red
    assert row.verdict.metric == "operations"
    assert row.note == "clone +20"
    assert row.head == (row.base or 0) + 20


def test_rounds_run_in_turns_and_both_are_timed(sides: tuple[Side, Side, Side]) -> None:
    timing = look_in_turns(sides[0], sides[1], FOUND[0], Plan(groups=2, pairs=1))
    assert [len(group.reference_s) for group in timing.groups] == [2, 2]
    assert 0.5 < timing.look.log_ratio + 1 < 1.5
    # Both are the same code; a factor of two would be a side that waits for the other.
    assert abs(timing.look.log_ratio) < 0.5


def test_a_scenario_that_a_side_does_not_know_fails_and_the_side_goes_on(
    sides: tuple[Side, Side, Side],
) -> None:
    (offload,) = [
        one for one in scenarios(["storybook"]) if one.technique.id == "sequential_cpu_offload"
    ]
    with pytest.raises(ScenarioError):
        look_in_turns(sides[0], sides[1], offload, Plan(groups=1, pairs=1))
    assert sides[0].ask("leave") == {}


def test_the_command_says_its_verdict_by_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def prepare(self: Environments, requirements: Requirements) -> Environment:
        return Environment(Path(sys.executable), str(requirements))

    monkeypatch.setattr(Environments, "prepare", prepare)
    arguments = ["--base", "diffusers==0.42.1", "--head", "diffusers==0.42.1"]
    options = ["--perf-device", "cpu", "-k", "[storybook-sdpa]", "--metric", "counters"]
    report = ["--perf-report", str(tmp_path / "report")]
    assert command.main([*arguments, *options, *report]) == 0
    said = capsys.readouterr().out
    assert "1 scenarios compared: 0 regressions" in said
    assert (tmp_path / "report" / "report.html").is_file()
    assert command.main([*arguments, "-k", "nothing"]) == 2
    assert "no scenario is selected by" in capsys.readouterr().err
    assert command.main([*arguments, "-k", "not a name"]) == 2
    assert "Wrong expression passed to '-k'" in capsys.readouterr().err
    assert command.main([*arguments, *options, "--perf-device", "gpu"]) == 2
    assert "--perf-device 'gpu' is unknown" in capsys.readouterr().err
