"""A survey: the most valuable first, within its time, cached, resumed, and written as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.__main__ import main
from fixtures.commands.survey.cache import RunCache, SurveyError
from fixtures.commands.survey.order import ordered
from fixtures.commands.survey.run import SAMPLES, VERSUS, Survey
from fixtures.commands.survey.versus import table, versus
from fixtures.devices import Device
from fixtures.devices.host import software_versions
from fixtures.measuring.observation import Observation
from fixtures.measuring.observations import Observations
from fixtures.measuring.rounds import Plan, timing_of
from fixtures.records.baseline_store import BaselineStore
from fixtures.records.counts import BYTES_TO_HOST, LAUNCHES, OPERATIONS, SYNCS, Counts
from fixtures.records.images import decoded
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.run import RESULTS, WHOLE, RunRecord
from fixtures.records.timing import Timing
from fixtures.scenarios import Scenario
from tests.support.fake_device import FakeDevice
from tests.support.runs import MIB, counts, entry, scenario_record, timing

SCENARIO_S = 60.0
IMAGE = np.random.default_rng(0).random((1, 16, 16, 3))
FOUND = [one for one in ordered("cpu", ["storybook"]) if one.technique.id in ("fp32", "bf16")]


class Bench:
    """A clock that each measurement moves, and what was measured in which order."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.taken: list[str] = []
        self.failing: Sequence[str] = ()
        self.interrupt_at = ""

    def observe(self, scenario: Scenario, device: Device) -> Observation:
        self.now_s += SCENARIO_S
        self.taken.append(scenario.technique.id)
        self._give_way(f"observe {scenario.technique.id}", scenario)
        return Observation(scenario.id, {WHOLE: MIB}, counts(mm=3), 1.0, IMAGE, None, ())

    def first(self, scenario: Scenario, plan: Plan) -> Timing:
        return self._sample(f"sample {scenario.technique.id}", scenario)

    def further(self, scenario: Scenario, plan: Plan) -> Timing:
        return self._sample(f"sample {scenario.technique.id} afresh", scenario)

    def _sample(self, what: str, scenario: Scenario) -> Timing:
        self.taken.append(what)
        self.now_s += 1.0
        self._give_way(what, scenario)
        return timing(1.1)

    def _give_way(self, what: str, scenario: Scenario) -> None:
        if what == self.interrupt_at:
            raise KeyboardInterrupt
        if what in self.failing:
            raise ScenarioError(scenario.id, Outcome.BROKEN, "ran out of memory")


def made_for(
    bench: Bench,
    folder: Path,
    minutes: float = 60.0,
    device: FakeDevice | None = None,
    weights: str = "",
) -> Survey:
    return Survey(
        Observations(device or FakeDevice(key="nvidia-fake", caveat="a caveat"), bench.observe),
        bench.first,
        bench.further,
        folder,
        minutes * 60,
        weights,
        show=lambda text: None,
        clock=lambda: bench.now_s,
    )


def survey(bench: Bench, folder: Path, **options: Any) -> Survey:
    made = made_for(bench, folder, **options)
    made.run(FOUND)
    return made


def test_the_table_of_the_docs_comes_first_and_the_reference_before_it() -> None:
    names = [one.id for one in ordered("cuda")]
    assert names[0] == "sd15-fp32"
    documented = [one for one in ordered("cuda", ["sd15"]) if one.technique.documented_speedup]
    assert [one.id for one in documented] == names[: len(documented)]


def test_everything_is_measured_once_before_anything_is_sampled_again(tmp_path: Path) -> None:
    bench = Bench()
    survey(bench, tmp_path)
    assert bench.taken[:4] == ["fp32", "sample fp32", "bf16", "sample bf16"]
    assert bench.taken[4:] == ["sample fp32 afresh", "sample bf16 afresh"] * (SAMPLES - 1)


def test_nothing_is_begun_that_would_not_be_done_in_time(tmp_path: Path) -> None:
    bench = Bench()
    made = survey(bench, tmp_path, minutes=1.5)
    assert list(made.runs) == ["storybook-fp32"]
    assert bench.now_s <= 90


def test_a_device_without_a_clock_is_not_sampled(tmp_path: Path) -> None:
    bench = Bench()
    made = survey(bench, tmp_path, device=FakeDevice(lacks={"clock": "it has none"}))
    assert bench.taken == ["fp32", "bf16"]
    made.write(FOUND, BaselineStore(tmp_path / "none"))
    stored = BaselineStore(tmp_path / "baselines").entry("fake", "storybook", "bf16")
    assert stored is not None
    assert (stored.ratios, stored.recorded.timing) == ((), {})


@pytest.mark.parametrize("interrupt_at", ["observe bf16", "sample bf16"])
def test_an_interrupted_survey_writes_what_is_whole_and_resumes_there(
    interrupt_at: str, tmp_path: Path
) -> None:
    first = Bench()
    first.interrupt_at = interrupt_at
    made = made_for(first, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        made.run(FOUND)
    made.write(FOUND, BaselineStore(tmp_path / "none"))
    stored = BaselineStore(tmp_path / "baselines").baseline("nvidia-fake", "storybook")
    assert stored is not None
    assert list(stored.scenarios) == ["fp32"]
    second = Bench()
    survey(second, tmp_path)
    # The reference is observed again for its images, and not timed anew.
    assert second.taken[:3] == ["bf16", "fp32", "sample bf16"]


def test_a_finished_survey_measures_nothing_again(tmp_path: Path) -> None:
    survey(Bench(), tmp_path)
    bench = Bench()
    made = survey(bench, tmp_path)
    assert bench.taken == []
    assert len(made.runs["storybook-bf16"].scenarios["storybook-bf16"].timings) == SAMPLES


def _of_other_software(run: RunRecord) -> None:
    run.software = {**software_versions(), "diffusers": "0.1"}


def _of_another_device(run: RunRecord) -> None:
    run.device_key = "nvidia-other"


def _of_other_hardware(run: RunRecord) -> None:
    run.hardware = {"processor": "another"}


def _of_other_weights(run: RunRecord) -> None:
    run.weights = "random"


def _of_another_scenario(run: RunRecord) -> None:
    other = replace(run.scenarios["storybook-fp32"], id="storybook-fp16")
    run.scenarios = {other.id: other}


def _timed_against_something_else(run: RunRecord) -> None:
    run.scenarios["storybook-fp32"].timed_against = "the control workload"


@pytest.mark.parametrize(
    "spoil",
    [
        _timed_against_something_else,
        _of_other_software,
        _of_another_device,
        _of_other_hardware,
        _of_other_weights,
        _of_another_scenario,
    ],
)
def test_what_belongs_elsewhere_is_measured_again(spoil: Any, tmp_path: Path) -> None:
    survey(Bench(), tmp_path)
    path = tmp_path / "scenarios" / "storybook-fp32.json"
    run = RESULTS.read(path)
    spoil(run)
    path.write_text(RESULTS.dump(run))
    bench = Bench()
    made = survey(bench, tmp_path)
    assert bench.taken == ["fp32", "sample fp32"] + ["sample fp32 afresh"] * (SAMPLES - 1)
    assert RESULTS.read(path) == made.runs["storybook-fp32"] != run


def test_own_weights_are_recorded_and_resumed(tmp_path: Path) -> None:
    made = survey(Bench(), tmp_path, weights="random")
    assert {run.weights for run in made.runs.values()} == {"random"}
    bench = Bench()
    survey(bench, tmp_path, weights="random")
    assert bench.taken == []


@pytest.mark.parametrize("text", ["{", "", '{"run": {}, "failure": ""}', '{"schema": 3}'])
def test_a_file_that_cannot_be_read_is_measured_again(text: str, tmp_path: Path) -> None:
    survey(Bench(), tmp_path)
    (tmp_path / "scenarios" / "storybook-bf16.json").write_text(text)
    bench = Bench()
    survey(bench, tmp_path)
    assert bench.taken[:3] == ["bf16", "fp32", "sample bf16"]


def test_what_cannot_be_cached_names_the_file_and_the_option(tmp_path: Path) -> None:
    (tmp_path / "scenarios").write_text("a file")
    with pytest.raises(SurveyError, match=r"storybook-fp32\.json cannot .*--perf-report"):
        RunCache(tmp_path / "scenarios").write("storybook-fp32", RunRecord())


@pytest.mark.parametrize(
    ("failing", "metric"),
    [
        ("observe bf16", "observation"),
        ("sample bf16", "latency"),
        ("sample bf16 afresh", "latency"),
    ],
)
def test_a_failure_is_a_verdict_no_baseline_and_tried_again(
    failing: str, metric: str, tmp_path: Path
) -> None:
    bench = Bench()
    bench.failing = (failing,)
    made = survey(bench, tmp_path)
    files = made.write(FOUND, BaselineStore(tmp_path / "none"))
    broken = RESULTS.read(files[0]).scenarios["storybook-bf16"]
    assert broken.outcome is Outcome.BROKEN
    assert [(one.metric, one.sentence) for one in broken.verdicts] == [
        (metric, "storybook-bf16: ran out of memory")
    ]
    stored = BaselineStore(tmp_path / "baselines")
    assert stored.entry("nvidia-fake", "storybook", "bf16") is None
    assert stored.entry("nvidia-fake", "storybook", "fp32") is not None
    again = survey(Bench(), tmp_path).runs["storybook-bf16"].scenarios["storybook-bf16"]
    assert (again.verdicts, len(again.timings)) == ([], SAMPLES)


def test_the_folder_holds_results_baselines_and_report(tmp_path: Path) -> None:
    made = survey(Bench(), tmp_path)
    names = {path.name for path in made.write(FOUND, BaselineStore(tmp_path / "none"))}
    assert names == {"results.json", "summary.md", "report.html", "storybook.json"}
    stored = BaselineStore(tmp_path / "baselines").entry("nvidia-fake", "storybook", "bf16")
    assert stored is not None
    assert len(stored.ratios) == SAMPLES
    assert stored.recorded.timing == timing_of(FOUND[1], FakeDevice())
    assert "frozen reference" in stored.recorded.timing
    assert stored.images == ()
    assert stored.recorded.reason == "survey"
    assert stored.ssim == 1.0
    fp32 = BaselineStore(tmp_path / "baselines").entry("nvidia-fake", "storybook", "fp32")
    assert fp32 is not None
    assert np.abs(decoded(fp32.images) - IMAGE).max() <= 0.5 / 255 + 1e-6
    run = RESULTS.read(tmp_path / "results.json")
    record = run.scenarios["storybook-bf16"]
    assert record.timed_against == "the frozen reference"
    assert record.speedup is not None, "over fp32's own timings"
    assert record.weights == "embedded"
    assert list(run.scenarios) == ["storybook-fp32", "storybook-bf16"]
    assert run.notes == ["a caveat"]


def test_simulated_figures_stand_beside_measured_ones(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    simulated = entry(
        judged_ms=(),
        ratios=(),
        component_peak_bytes={WHOLE: 90 * MIB, "reserved": MIB},
        counts=Counts({SYNCS: 17, OPERATIONS: 5, BYTES_TO_HOST: 3 * MIB}),
    )
    store.stage("simulated", "sd15", "fp16", simulated)
    store.commit()
    measured = scenario_record(
        "fp16",
        workload="sd15",
        component_peak_bytes={WHOLE: 100 * MIB, "denoiser": MIB},
        counts=Counts({SYNCS: 20, LAUNCHES: 9, OPERATIONS: 6, BYTES_TO_HOST: 4 * MIB}),
    )
    unknown = scenario_record("unknown", workload="sd15", peak_bytes=MIB)
    found = versus([measured, unknown], store)
    assert [one.row for one in found] == [
        ("sd15-fp16", "peak memory, whole", "90.00 MiB", "100.00 MiB", "-10.0 %"),
        ("sd15-fp16", "bytes copied to the host", "3.00 MiB", "4.00 MiB", "-25.0 %"),
        ("sd15-fp16", "synchronisations", "17", "20", "-15.0 %"),
    ]
    assert table(found).count("\n") == 5
    assert VERSUS.endswith(".md")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--perf-device", "abacus"], "survey: --perf-device 'abacus' is unknown"),
        (["--perf-workload", "nothing"], "survey: Workload 'nothing' is unknown"),
    ],
)
def test_a_survey_that_cannot_start_says_so_in_a_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--perf-report", str(tmp_path / "out"), *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith(sentence)
    assert said.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_blamed_on_the_option_that_named_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["--perf-report", str(tmp_path / "file" / "out")]) == 2
    assert capsys.readouterr().err.startswith("survey: --perf-report ")


def test_the_survey_explains_the_options_of_the_suite(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    for option, words in {
        "--perf-device DEVICE": "where to run: auto, cpu, cuda, simulated",
        "--perf-workload NAME": "a workload to run, repeatable",
        "--perf-weights random|PATH|HUB_ID": "weights of the pipeline",
        "--perf-report DIR": "folder for results, baselines and report (default: survey)",
    }.items():
        assert f"{option} {words}" in said


def test_a_missing_package_is_named_with_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "skimage" else 1)
    assert main([]) == 2
    assert capsys.readouterr().err == (
        "survey: scikit-image is missing: python -m pip install scikit-image\n"
    )
