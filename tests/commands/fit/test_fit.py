"""The command: what it answers on a small pipeline, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.commands.fit import __main__ as command
from fixtures.devices.simulated.profiles import PROFILES
from fixtures.records.fit import FITS
from fixtures.records.units import MIB
from fixtures.techniques import CATALOGUE
from fixtures.workloads import WORKLOADS
from tests.support.simulated_runs import small

Fit = Callable[..., SimpleNamespace]


@pytest.fixture
def fit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fit:
    """Runs the command with two techniques on a card of which a small pipeline takes some part."""
    monkeypatch.setitem(WORKLOADS, "small", small())
    card = replace(PROFILES["rtx-3060"], id="card", name="CARD")
    monkeypatch.setattr("fixtures.devices.simulated.profiles.PROFILES", {"card": card})
    chosen = [CATALOGUE["fp16"], CATALOGUE["model_cpu_offload"]]
    monkeypatch.setattr("fixtures.commands.fit.configurations.single_techniques", lambda _: chosen)

    def run(*arguments: str, memory_mib: int = 0) -> SimpleNamespace:
        if memory_mib:
            less = replace(card, memory_bytes=memory_mib * MIB)
            monkeypatch.setattr("fixtures.devices.simulated.profiles.PROFILES", {"card": less})
        code = command.main(["small", "--card", "card", *arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return run


def test_the_answer_is_a_table_a_program_and_files(fit: Fit, tmp_path: Path) -> None:
    said = fit("--perf-report", str(tmp_path / "report"))
    assert said.code == 0
    assert said.out.startswith("small (width 128, height 128, steps 3, batch 1) on CARD")
    assert "The cheapest that fits, fp16:" in said.out
    assert "StableDiffusionPipeline.from_pretrained(" in said.out
    tried = [line.partition(":")[0] for line in said.err.splitlines()]
    assert tried == ["fp16", "model_cpu_offload", "vae_tiling + model_cpu_offload"]
    record = FITS.read(tmp_path / "report" / "fit.json")
    assert [one.name for one in record.ways] == ["fp16", "model_cpu_offload"]
    assert "fp16" in (tmp_path / "report" / "fit.html").read_text(encoding="utf-8")


def test_a_card_that_is_too_small_says_where_the_memory_ran_out(fit: Fit) -> None:
    said = fit(memory_mib=320)
    assert said.code == 1
    assert "Nothing of this fits CARD." in said.out
    assert "fp16: lacks " in said.out
    assert "out of memory: 2.00 MiB asked for, 0.00 MiB of 0.00 MiB are free" in said.err
    assert ", while weights are placed" in said.err


def test_a_larger_call_takes_more(fit: Fit, tmp_path: Path) -> None:
    needed = []
    for width in ("128", "256"):
        fit("--width", width, "--perf-report", str(tmp_path))
        needed.append(FITS.read(tmp_path / "fit.json").ways[0].needed_bytes)
    assert needed[0] < needed[1]


def test_steps_take_time_and_no_memory(fit: Fit, tmp_path: Path) -> None:
    found = []
    for steps in ("3", "30", "57"):
        fit("--steps", steps, "--perf-report", str(tmp_path))
        found.append(FITS.read(tmp_path / "fit.json").ways[0])
    few, more, most = found
    assert few.needed_bytes == more.needed_bytes == most.needed_bytes
    assert more.bound_ms - few.bound_ms == pytest.approx(most.bound_ms - more.bound_ms)
    assert more.bound_ms > 5 * few.bound_ms


def test_host_memory_can_be_what_lacks(fit: Fit) -> None:
    assert "lacks" in fit("--host-memory", "0.001").out


def test_an_interrupt_shows_what_was_tried(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    from fixtures.measuring import trial

    calls: Iterator[int] = iter(range(9))
    try_configuration = trial.try_configuration

    def interrupted(*arguments: Any) -> Any:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return try_configuration(*arguments)

    monkeypatch.setattr(trial, "try_configuration", interrupted)
    said = fit()
    assert said.code == 130
    assert "interrupted" in said.err
    assert "The cheapest that fits, fp16:" in said.out


def test_a_way_that_raises_is_named_and_the_others_go_on(
    fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = replace(CATALOGUE["fp16"], code="raise ValueError('no such thing')")
    chosen = [broken, CATALOGUE["model_cpu_offload"]]
    monkeypatch.setattr("fixtures.commands.fit.configurations.single_techniques", lambda _: chosen)
    said = fit()
    assert said.code == 0
    assert "not tried: fp16: raised ValueError: no such thing" in said.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["flux", "--card", "rtx-2080"], "--card: there is no simulated device 'rtx-2080': choose"),
        (
            ["flux1", "--card", "rtx-4090"],
            "'flux1' is no workload, no folder and no hub id;",
        ),
        (["flux", "--card", "rtx-4090", "--frames", "9"], "flux draws images: leave --frames out"),
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


def test_a_call_that_the_pipeline_refuses_is_one_sentence(fit: Fit) -> None:
    said = fit("--width", "100")
    assert said.code == 2
    assert "divisible by 8" in said.err
