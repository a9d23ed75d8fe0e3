"""A survey: the most valuable first, within its time, kept, gone on with, and written as one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.__main__ import main
from fixtures.baselines import BaselineStore
from fixtures.measurement import Observation, ScenarioError
from fixtures.report.results import from_json
from fixtures.rounds import Plan, Timing
from fixtures.scenarios import Scenario
from fixtures.survey.order import ordered
from fixtures.survey.run import LOOKS, VERSUS, Survey
from fixtures.survey.versus import table, versus
from fixtures.verdicts import Outcome
from tests.records import MIB, entry, timing

SCENARIO_S = 60.0
FOUND = [one for one in ordered("cpu", ["storybook"]) if one.technique.id in ("fp32", "bf16")]


class FakeDevice:
    """A device with a clock and pictures, and nothing else."""

    name = "cpu"
    key = "nvidia-fake"
    caveat = "a caveat"
    memory_source = "ledger"

    def __init__(self, cores: int = 8) -> None:
        self.hardware = {"cores": cores}

    def missing(self, need: str) -> str | None:
        return None

    def release(self) -> None:
        """Nothing is held."""


class Bench:
    """A fake clock that each measurement moves, and what was measured."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.seen: list[str] = []
        self.failing: Sequence[str] = ()
        self.interrupt_at = ""

    def observe(self, scenario: Scenario, device: Any) -> Observation:
        if scenario.id == self.interrupt_at:
            raise KeyboardInterrupt
        self.now_s += SCENARIO_S
        self.seen.append(scenario.technique.id)
        if scenario.technique.id in self.failing:
            raise ScenarioError(Outcome.BROKEN, f"{scenario.id}: ran out of memory")
        picture = np.random.default_rng(0).random((1, 16, 16, 3))
        return Observation(scenario.id, {"whole": MIB}, {"aten::mm": 3}, 1.0, picture, None, ())

    def look(self, scenario: Scenario, device: Any, plan: Plan) -> Timing:
        self.seen.append(f"look at {scenario.technique.id}")
        self.now_s += 1.0
        return timing(1.1)


def survey(bench: Bench, folder: Path, minutes: float = 60.0) -> Survey:
    made = Survey(
        FakeDevice(),  # type: ignore[arg-type]
        folder,
        minutes * 60,
        BaselineStore(folder / "none"),
        show=lambda text: None,
        clock=lambda: bench.now_s,
        observer=bench.observe,
        first_look=bench.look,
        look=bench.look,
    )
    made.run(FOUND)
    return made


def test_the_documents_table_comes_first_and_the_reference_before_it() -> None:
    names = [one.id for one in ordered("cuda")]
    assert names[0] == "sd15-fp32"
    documented = [one for one in ordered("cuda", ["sd15"]) if one.technique.documented_speedup]
    assert [one.id for one in documented] == names[: len(documented)]


def test_everything_is_measured_once_before_anything_is_looked_at_again(tmp_path: Path) -> None:
    bench = Bench()
    survey(bench, tmp_path)
    assert bench.seen[:4] == ["fp32", "look at fp32", "bf16", "look at bf16"]
    assert bench.seen[4:] == ["look at fp32", "look at bf16"] * (LOOKS - 1)


def test_nothing_is_begun_that_would_not_be_over_in_time(tmp_path: Path) -> None:
    bench = Bench()
    made = survey(bench, tmp_path, minutes=1.5)
    assert list(made.done) == ["storybook-fp32"]
    assert bench.now_s <= 90


def test_an_interrupted_survey_goes_on_where_it_was(tmp_path: Path) -> None:
    first = Bench()
    first.interrupt_at = "storybook-bf16"
    with pytest.raises(KeyboardInterrupt):
        survey(first, tmp_path)
    second = Bench()
    made = survey(second, tmp_path)
    assert list(made.done) == ["storybook-fp32", "storybook-bf16"]
    # The reference is observed again for its pictures, and not timed anew.
    assert second.seen[:3] == ["bf16", "fp32", "look at bf16"]


def test_what_another_device_or_a_damaged_file_holds_is_measured_again(tmp_path: Path) -> None:
    survey(Bench(), tmp_path)
    path = tmp_path / "scenarios" / "storybook-fp32.json"
    stored = json.loads(path.read_text())
    stored["run"]["device"]["key"] = "nvidia-other"
    path.write_text(json.dumps(stored))
    (tmp_path / "scenarios" / "storybook-bf16.json").write_text("{")
    bench = Bench()
    survey(bench, tmp_path)
    assert bench.seen[:4] == ["fp32", "look at fp32", "bf16", "look at bf16"]


def test_a_failure_is_kept_said_and_tried_again(tmp_path: Path) -> None:
    bench = Bench()
    bench.failing = ("bf16",)
    made = survey(bench, tmp_path)
    assert made.done["storybook-bf16"].failure == "storybook-bf16: ran out of memory"
    files = made.write(FOUND)
    run = from_json(json.loads(files[0].read_text()))
    broken = run.scenarios["storybook-bf16"]
    assert broken.status == "broken"
    assert broken.verdicts[0].sentence == "storybook-bf16: ran out of memory"
    again = Bench()
    assert not survey(again, tmp_path).done["storybook-bf16"].failure


def test_the_folder_holds_results_baselines_and_report(tmp_path: Path) -> None:
    made = survey(Bench(), tmp_path)
    names = {path.name for path in made.write(FOUND)}
    assert names == {"results.json", "summary.md", "report.html", "storybook.json"}
    stored = BaselineStore(tmp_path / "baselines").entry("nvidia-fake", "storybook", "bf16")
    assert stored is not None
    assert len(stored.ratios) == LOOKS
    assert stored.recorded["timing"] == {"steps": 3}
    assert stored.ssim == 1.0
    run = from_json(json.loads((tmp_path / "results.json").read_text()))
    assert list(run.scenarios) == ["storybook-fp32", "storybook-bf16"]
    assert run.notes == ["a caveat"]


def test_simulated_figures_stand_beside_measured_ones(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    simulated = entry(
        latency_ms=(),
        ratios=(),
        peak_memory_bytes={"whole": 90 * MIB, "reserved": MIB},
        counters={"synchronisations": 17, "operations": 5},
    )
    store.stage("simulated", "sd15", "fp16", simulated)
    store.commit()
    measured = entry(
        peak_memory_bytes={"whole": 100 * MIB, "denoiser": MIB},
        counters={"synchronisations": 20, "kernel launches": 9},
    )
    found = versus([("sd15", "fp16", measured), ("sd15", "unknown", measured)], store)
    assert [one.row for one in found] == [
        ("sd15-fp16", "peak memory, whole", "90.00 MiB", "100.00 MiB", "-10.0 %"),
        ("sd15-fp16", "synchronisations", "17", "20", "-15.0 %"),
    ]
    assert table(found).count("\n") == 4
    assert VERSUS.endswith(".md")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--device", "cuda"], "survey: "),
        (["--workload", "nothing"], "survey: Workload 'nothing' is unknown"),
    ],
)
def test_a_survey_that_cannot_start_says_so_in_a_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--output", str(tmp_path / "out"), *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith(sentence)
    assert said.count("\n") == 1


def test_a_missing_package_is_named_with_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "skimage" else 1)
    assert main([]) == 2
    assert capsys.readouterr().err == (
        "survey: scikit-image is missing: python -m pip install scikit-image\n"
    )
