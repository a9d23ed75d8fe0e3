"""A call that does nothing is told from one that acts, one that warns and one that is refused."""

from __future__ import annotations

import contextlib
import logging
import warnings

import pytest

from fixtures.commands.errors import CommandError
from fixtures.devices import Trace
from fixtures.devices.global_state.switching import attention_backend_put_back
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.counts import Counts
from fixtures.studies.no_ops import trial
from fixtures.studies.no_ops.calls import CONTROL, calls
from fixtures.studies.no_ops.comparison import difference
from fixtures.studies.no_ops.making import Call, by_lines
from fixtures.studies.no_ops.trial import Found
from tests.studies.no_ops.trying import found_by, tiny, trials, tried

CONTROLLED = {CONTROL: Call(by_lines('pipeline.enable_model_cpu_offload(device="cuda")'))}


def ignore(_: Found) -> None:
    """Nobody watches."""


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


def test_lines_may_depend_on_the_pipeline_and_write_to_a_folder() -> None:
    for name in ("group_offload_block", "group_offload_disk"):
        assert tried(calls()[name]).verdict == "acts", name


def test_a_call_that_asks_for_values_acts() -> None:
    found = tried(calls()["first_block_cache"])

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
    assert difference(Trace(counts=Counts(totals={"operations": 3})), after)


def origins(**counts: int) -> Trace:
    """A run of 300 operations, and which modules called how many of them."""
    by_origin = {f"aten::add in {kind}": count for kind, count in counts.items()}
    return Trace(counts=Counts(totals={"operations": 300}), origins=by_origin)


def test_another_name_of_a_module_is_no_difference() -> None:
    plain = origins(Block=40, Attention=260)

    assert not difference(plain, origins(PatchedBlock=40, Attention=260))
    moved = difference(plain, origins(Block=41, Attention=259))
    assert moved == "aten::add by module [40, 260] -> [41, 259]"
    assert difference(plain, origins(Block=300)) == "aten::add by module [40, 260] -> [300]"


def test_what_else_differs_is_told_in_numbers() -> None:
    plain = Trace(counts=Counts(totals={"operations": 3}), component_peak_bytes={"vae": 1024})
    after = Trace(counts=Counts(totals={"operations": 3}), calls={"vae": 2000})

    assert difference(plain, after) == "calls of vae 0 -> 2,000, peak of vae 1,024 -> 0"


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
        trial.all_tried(tiny("flux"), SimulatedDevice("h200"), {}, CONTROL, ignore)


def test_what_a_call_sets_for_the_whole_process_is_put_back() -> None:
    device, workload = SimulatedDevice("h200"), tiny("flux")
    plain, _ = trials("flux").without()

    assert tried(calls()["math_backend"]).verdict == "acts"
    assert not difference(plain, trial.observed(workload, device))


@pytest.mark.long
def test_what_a_call_leaves_behind_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "shortened", lambda workload: workload)
    monkeypatch.setattr(trial, "state_put_back", contextlib.nullcontext)
    lines = {**CONTROLLED, "math": calls()["math_backend"]}
    workload, device = tiny("flux"), SimulatedDevice("h200")

    with attention_backend_put_back(), pytest.raises(CommandError, match="equal runs differ"):
        trial.all_tried(workload, device, lines, CONTROL, ignore)


def test_nothing_is_told_where_the_control_does_not_act(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "shortened", lambda workload: workload)
    monkeypatch.setattr(trial, "observed", lambda *_: Trace())

    with pytest.raises(CommandError, match="was not seen to act"):
        trial.all_tried(tiny("flux"), SimulatedDevice("h200"), CONTROLLED, CONTROL, ignore)
