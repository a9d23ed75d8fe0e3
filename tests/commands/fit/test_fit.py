"""The command: what it answers on a small pipeline, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads import WORKLOADS
from fixtures.commands.fit import __main__ as command
from fixtures.commands.fit import answering
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.devices.simulated.profiles import PROFILES, find_card
from fixtures.records.fit import FIT, Configuration
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.units import MIB
from fixtures.settings import Settings
from fixtures.worker import tasks
from fixtures.worker.protocol import Action, Facts, Opening, Task, Trying, send_answer
from fixtures.worker.running import Running
from tests.support import fits
from tests.support.simulated_runs import small

Fit = Callable[..., SimpleNamespace]
CARD = replace(PROFILES["rtx-3060"], id="card", name="CARD")


class WorkerHere:
    """A worker in this process; `made_up` gives what a trial takes, where it is not tried."""

    made_up: Callable[[Sequence[str]], Configuration] | None = None

    def __init__(self, settings: Settings) -> None:
        self.opening = Opening(settings.device, "card", "", "")

    def begin(self, action: Action, trying: Trying) -> Any:
        """A trial, whose answer is there at once."""
        ours, theirs = Pipe()
        if self.made_up is None:
            tasks.run(Task(action, self.opening, trying=trying), theirs)
        else:
            try:
                send_answer(theirs, self.made_up(trying.techniques))
            except ScenarioError as error:
                send_answer(theirs, error.verdict("run"))
        return Answered(ours)

    def ask(self, action: Action, expected: type, trying: Trying) -> Any:
        """Facts of the card."""
        return Facts.of(SimulatedDevice(find_card(trying.card)))

    def close(self) -> None:
        """Nothing to end."""


class Answered(Running):
    """A task that has answered."""

    def __init__(self, channel: Connection) -> None:
        self.channel, self._scenario, self._limit_s = channel, "", 60.0
        self._side = None

    def close(self) -> None:
        """Nothing to end."""


@pytest.fixture
def fit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fit:
    """Runs the command with these techniques on a card of which a small pipeline takes a part."""
    monkeypatch.setitem(WORKLOADS, "small", small())
    monkeypatch.setattr(answering, "processes_at_once", lambda: 1)
    monkeypatch.setattr(answering, "Worker", WorkerHere)
    tasks._asked.cache_clear()

    def run(
        *arguments: str,
        techniques: Sequence[str] = ("fp16", "model_cpu_offload"),
        memory_mib: int = 0,
    ) -> SimpleNamespace:
        card = replace(CARD, memory_bytes=memory_mib * MIB) if memory_mib else CARD
        monkeypatch.setattr("fixtures.devices.simulated.profiles.PROFILES", {"card": card})
        chosen = [CATALOGUE[name] for name in techniques]
        monkeypatch.setattr(answering, "single_techniques", lambda workload: chosen)
        code = command.main(["small", "--card", "card", *arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return run


@pytest.fixture
def fake_trial(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replaces the trial: techniques take what is made up of them, or raise."""

    def replace_trial(**raised: BaseException) -> None:
        def made_up(names: Sequence[str]) -> Configuration:
            if error := raised.get("_".join(names)):
                raise error
            return fits.way(names, needed_bytes=MIB, bound_ms=len(names), peak_in="vae")

        monkeypatch.setattr(WorkerHere, "made_up", staticmethod(made_up))

    replace_trial()
    return replace_trial


def test_the_answer_is_a_table_a_program_and_files(
    fit: Fit, fake_trial: Callable[..., None], tmp_path: Path
) -> None:
    said = fit("--perf-report", str(tmp_path / "report"))
    assert said.code == 0
    assert said.out.startswith("small (width 128, height 128, steps 3, batch 1) on CARD")
    title = "Fastest that fits and least of the card and least of the host, fp16: needs 1.00 MiB of"
    assert title in " ".join(said.out.split())
    assert "\n\npipeline()\nwritten: " in said.out
    tried = [line.partition(":")[0] for line in said.err.splitlines()]
    assert tried == ["1/2 fp16", "2/3 model_cpu_offload", "3/3 vae_tiling + model_cpu_offload"]
    record = FIT.read(tmp_path / "report" / "fit.json")
    assert [each.name for each in record.ways] == ["fp16", "model_cpu_offload"]
    assert set(record.ssim["fp16"]) == {"storybook", "storybook-dit"}


def test_a_card_that_is_too_small_says_where_the_memory_ran_out(fit: Fit) -> None:
    said = fit(memory_mib=320, techniques=["fp16"])
    assert said.code == 1
    assert "Nothing of this fits CARD." in said.out
    assert "fp16: lacks " in said.out
    assert re.search(r"out of memory: \d+\.00 MiB requested, 0\.00 MiB of 0\.00 MiB", said.err)
    assert ", while weights are placed" in said.err


def test_a_larger_call_takes_more_memory_and_more_steps_take_time(fit: Fit, tmp_path: Path) -> None:
    wide, few, many = (
        FIT.read(tmp_path / "fit.json").ways[0]
        for option, value in (("--width", "256"), ("--steps", "3"), ("--steps", "30"))
        if fit(option, value, "--perf-report", str(tmp_path), techniques=["fp16"])
    )
    assert "StableDiffusionPipeline.from_pretrained(" in few.program
    assert wide.needed_bytes > few.needed_bytes == many.needed_bytes
    assert 5 * few.bound_ms < many.bound_ms < 10 * few.bound_ms


def test_lines_that_raise_and_a_call_that_is_refused_are_named(
    fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = fit("--width", "100", techniques=["fp16"])
    assert said.code == 2
    assert "divisible by 8" in said.err
    broken = replace(CATALOGUE["fp16"], code="raise ValueError('no such thing')")
    monkeypatch.setitem(CATALOGUE.techniques, "fp16", broken)
    said = fit(techniques=["tiny_vae", "fp16"])
    assert said.code == 2
    assert "small cannot run in any way here: fp16: raised ValueError: no such thing" in said.err


def test_what_raises_is_said_where_it_is_tried_and_no_way_is_left_out_for_it(
    fit: Fit, fake_trial: Callable[..., None]
) -> None:
    fake_trial(fp16=ScenarioError("small-fp16", Outcome.BROKEN, "raised ValueError: no"))
    said = fit()
    assert said.code == 0
    assert said.err.startswith("1/2 fp16: raised ValueError: no [0 s]\n")
    assert "2/3 model_cpu_offload: needs 1.00 MiB [0 s]\n" in said.err
    assert "not tried: fp16: raised ValueError: no" in said.out


def test_a_size_is_a_card_and_host_memory_may_be_short(
    fit: Fit, fake_trial: Callable[..., None]
) -> None:
    said = fit("--card", "12GiB", "--host-memory", "0.001")
    assert "on a card of 12GiB, otherwise a CARD, 12.00 GiB" in said.out
    assert "model_cpu_offload: lacks 1022.98 MiB of host memory" in said.out
    assert said.code == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["flux", "--card", "rtx-2080"], "--card: there is no simulated device 'rtx-2080'; did"),
        (
            ["flux1", "--card", "rtx-4090"],
            "'flux1' is not a known workload, folder or hub id; did you mean flux?",
        ),
        (
            ["flux", "--card", "rtx-4090", "--frames", "9"],
            "flux generates images; --frames is for video",
        ),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"fit: {sentence}")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "option", [["--width", "0"], ["--steps", "-1"], ["--batch", "x"], ["--host-memory", "nan"]]
)
def test_no_number_is_refused(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        command.main(["flux", "--card", "rtx-4090", *option])
    assert raised.value.code == 2
    assert option[0] in capsys.readouterr().err
