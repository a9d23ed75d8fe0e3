"""A call that does nothing is told from one that acts, one that warns and one that is refused."""

from __future__ import annotations

import contextlib
import logging
import warnings
from pathlib import Path

import pytest

from fixtures.commands.errors import CommandError
from fixtures.commands.no_ops import __main__ as command
from fixtures.commands.no_ops import shortening, trial
from fixtures.commands.no_ops.calls import CONTROL, FROM_THE_CATALOGUE, calls
from fixtures.commands.no_ops.page import page
from fixtures.commands.no_ops.pipelines import by_class
from fixtures.commands.no_ops.trial import Found
from fixtures.devices import Trace, global_state
from fixtures.devices.global_state import attention_backend_put_back
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.counts import Counts
from tests.support.small_workloads import small_workload

CONTROLLED = {CONTROL: 'pipeline.enable_model_cpu_offload(device="cuda")'}
VERSIONS = {"torch": "2.13.0", "diffusers": "0.42.1", "transformers": "5.23.0"}
PAGE = Path("docs/no-ops.md")


def ignore(_: Found) -> None:
    """Nobody watches."""


def found_by(lines: str, name: str = "flux") -> Found:
    """What a call is found to do on a small workload, which is small already."""
    device = SimulatedDevice("h200")
    workload = small_workload(name)
    with trial.listening() as heard:
        plain = trial.observed(workload, device)
    return trial.tried("this", lines, workload, device, plain, set(heard))


def test_a_call_that_acts() -> None:
    found = found_by('pipeline.{denoiser}.set_attention_backend("_native_math")')

    assert (found.verdict, found.why[:11]) == ("acts", "operations ")


def test_a_call_that_does_nothing_silently() -> None:
    assert found_by("pipeline.enable_attention_slicing()").verdict == "silent"


def test_a_call_that_does_nothing_and_warns() -> None:
    lines = "import warnings\nwarnings.warn('this does nothing here')"

    assert found_by(lines) == Found("this", "warned", "this does nothing here")


def test_a_call_that_a_pipeline_does_not_have() -> None:
    found = found_by("pipeline.enable_freeu(s1=0.9, s2=0.2, b1=1.2, b2=1.4)")

    assert found.verdict == "refused"
    assert "enable_freeu" in found.why


def test_a_call_for_which_the_run_gives_way() -> None:
    found = found_by("pipeline.{denoiser}.forward = lambda *_, **__: 1 / 0")

    assert (found.verdict, found.why) == (
        "refused",
        "in the call, ZeroDivisionError: division by zero",
    )


def test_a_call_that_asks_for_values_acts() -> None:
    found = found_by(calls()["first_block_cache"])

    assert (found.verdict, found.why) == ("acts", "asks for values")


def test_what_the_plain_run_is_warned_of_says_nothing() -> None:
    plain = Trace(counts=Counts(totals={"operations": 3}))

    assert trial.judged("this", plain, plain, []).verdict == "silent"
    assert trial.judged("this", plain, plain, ["no"]) == Found("this", "warned", "no")


@pytest.mark.parametrize(
    "after",
    [
        Trace(counts=Counts(totals={"operations": 4})),
        Trace(counts=Counts(totals={"operations": 3}), origins={"Attention": 1}),
        Trace(counts=Counts(totals={"operations": 3}), component_peak_bytes={"vae": 1}),
        Trace(counts=Counts(totals={"operations": 3}), host_bytes={"pinned": 1}),
        Trace(counts=Counts(totals={"operations": 3}), calls={"vae": 2}),
        Trace(counts=Counts(totals={"operations": 3}), bound_s=1.0),
    ],
)
def test_any_difference_counts(after: Trace) -> None:
    assert trial.difference(Trace(counts=Counts(totals={"operations": 3})), after)


def test_loggers_and_warnings_are_heard_and_left_as_they_were() -> None:
    logger = logging.getLogger("diffusers")
    before = (list(logger.handlers), logger.level)

    with trial.listening() as heard:
        logging.getLogger("diffusers.hooks").warning("by %s", "a log")
        warnings.warn("by a warning", stacklevel=1)

    assert heard == ["by a log", "by a warning"]
    assert (logger.handlers, logger.level) == before


def test_nothing_is_told_where_equal_runs_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = iter(Trace(bound_s=float(run)) for run in range(2))
    monkeypatch.setattr(trial, "shortened", lambda workload: workload)
    monkeypatch.setattr(trial, "observed", lambda *_: next(traces))

    with pytest.raises(CommandError, match="two equal runs differ"):
        trial.all_tried(small_workload("flux"), SimulatedDevice("h200"), {}, CONTROL, ignore)


def test_what_a_call_sets_for_the_whole_process_is_put_back() -> None:
    device, workload = SimulatedDevice("h200"), small_workload("flux")
    plain = trial.observed(workload, device)
    math = trial.observed(workload, device, calls()["math_backend"])

    assert trial.difference(plain, math)
    assert not trial.difference(plain, trial.observed(workload, device))


def test_what_a_call_leaves_behind_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "shortened", lambda workload: workload)
    monkeypatch.setattr(global_state, "attention_backend_put_back", contextlib.nullcontext)
    lines = {**CONTROLLED, "math": calls()["math_backend"]}
    workload, device = small_workload("flux"), SimulatedDevice("h200")

    with attention_backend_put_back(), pytest.raises(CommandError, match="equal runs differ"):
        trial.all_tried(workload, device, lines, CONTROL, ignore)


def test_nothing_is_told_where_the_control_does_not_act(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "shortened", lambda workload: workload)
    monkeypatch.setattr(trial, "observed", lambda *_: Trace())

    with pytest.raises(CommandError, match="was not seen to act"):
        trial.all_tried(
            small_workload("flux"), SimulatedDevice("h200"), CONTROLLED, CONTROL, ignore
        )


def test_every_class_is_cut_to_two_layers_of_its_published_width() -> None:
    from fixtures.workloads import WORKLOADS

    for kind, name in by_class().items():
        cut = shortening.shortened(WORKLOADS[name])
        parts = cut.source.layout.models  # type: ignore[attr-defined]
        for part, config in cut.source.configs.items():  # type: ignore[attr-defined]
            is_encoder = part in parts and parts[part].library == "transformers"
            if is_encoder and kind in shortening.READ_IN_THE_MIDDLE:
                assert config == WORKLOADS[name].source.configs[part]  # type: ignore[attr-defined]
                continue
            for key in shortening.LAYERS:
                layers = config.get(key, 0)
                most = layers if isinstance(layers, int) else max(layers)
                assert most <= shortening.FEWEST_LAYERS, (name, part, key)
        assert (cut.call.batch, cut.call.steps) == (2, shortening.STEPS)


def test_a_workload_without_a_published_configuration_is_refused() -> None:
    from fixtures.workloads import WORKLOADS

    with pytest.raises(CommandError, match="no published configuration"):
        shortening.shortened(WORKLOADS["storybook"])


def test_every_call_of_the_catalogue_has_lines() -> None:
    assert set(FROM_THE_CATALOGUE) <= calls().keys()


def test_the_page_says_what_was_found() -> None:
    found = {
        "FluxPipeline": [Found("slicing", "silent"), Found("tiling", "acts", "peak -10.0%")],
        "WanPipeline": [Found("slicing", "refused", "no | such"), Found("tiling", "warned", "hm")],
    }

    text = page(found, VERSIONS)

    assert "| slicing | **nothing** | - |" in text
    assert "| tiling | acts | warns |" in text
    assert "| slicing | Wan | `no / such` |" in text
    assert "torch 2.13.0, diffusers 0.42.1" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pipeline", "Nothing"], "no workload runs 'Nothing'"),
        (["--jobs", "0"], "take 1 or more"),
    ],
)
def test_what_cannot_be_tried_is_one_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(arguments) == 2
    assert said in capsys.readouterr().err


def test_the_stored_page_has_every_class_and_every_call(request: pytest.FixtureRequest) -> None:
    text = (request.config.rootpath / PAGE).read_text("utf-8")
    head = (
        "| call | "
        + " | ".join(kind.removesuffix("Pipeline") for kind in by_class(every=False))
        + " |"
    )

    assert head in text
    for name in calls():
        assert f"\n| {name} | " in text, name
