"""One scenario observed on a fake device: what is seen, and what a failure leaves behind."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fixtures.devices import WHOLE, Trace
from fixtures.measurement import (
    WARM_UP_STEPS,
    Bench,
    Observation,
    ScenarioError,
    is_out_of_memory,
    observe,
)
from fixtures.scenarios import Scenario
from fixtures.techniques.registry import CATALOGUE, Scene
from fixtures.verdicts import Outcome
from fixtures.workloads import WorkloadError

PICTURES = np.random.default_rng(0).random((2, 32, 32, 3))


class FakeDevice:
    """A device on which nothing is measured but how often it was asked."""

    name = key = "fake"
    hardware: Mapping[str, Any] = {}

    torch_device = torch.device("cpu")

    def __init__(self) -> None:
        self.now_s = 0.0
        self.released = 0

    def busy_s(self) -> float:
        return self.now_s

    def synchronize(self) -> None:
        """Nothing is queued."""

    def entered(self) -> Any:
        return contextlib.nullcontext()

    def observed_steps(self, steps: int, telling: int) -> int:
        return steps

    def release(self) -> None:
        self.released += 1
        gc.collect()

    @contextlib.contextmanager
    def observe(self, pipeline: Any, *, opaque: bool = False) -> Iterator[Trace]:
        trace = Trace()
        yield trace
        trace.peak_bytes[WHOLE] = 1000
        trace.counters["aten::mm"] = 3


class FakeWorkload:
    """Draws by calling the pipeline."""

    name = "fake"
    call = SimpleNamespace(steps=4)
    telling_steps = 3

    def draw(self, pipeline: Any, **changes: Any) -> Any:
        return pipeline.call(**changes)


class Weights:
    """Something that can be referred to weakly."""


def scenario(
    call: Callable[..., Any], *, name: str = "tried", complaint: str | None = None, **hooks: Any
) -> Scenario:
    """A scenario whose pipeline's call is this function."""

    def apply(workload: Any, device: Any) -> Iterator[Any]:
        hooks.get("enter", lambda: None)()
        yield SimpleNamespace(call=call)
        hooks.get("leave", lambda: None)()

    def proof(scene: Scene) -> str | None:
        return complaint

    technique = replace(CATALOGUE["fp16"], id=name, apply=apply, proof=proof)
    return Scenario(FakeWorkload(), technique)  # type: ignore[arg-type]


def draw(**_: Any) -> Any:
    return PICTURES


def raising(error: BaseException) -> Callable[..., Any]:
    """A call that holds weights while it raises."""

    def call(**_: Any) -> Any:
        raise error

    return call


def bench() -> Bench:
    return Bench(FakeDevice())  # type: ignore[arg-type]


def failure(of: Scenario, on: Bench | None = None) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        (on or bench()).active(of)
    assert "\n" not in str(caught.value)
    return caught.value


def test_an_observation_is_made_after_a_warm_up_and_only_once() -> None:
    calls: list[dict[str, Any]] = []

    def call(**changes: Any) -> Any:
        calls.append(changes)
        return PICTURES

    one, seen = scenario(call), bench()
    assert seen.seen(one) is None
    observation = seen.active(one)
    assert calls == [{"steps": WARM_UP_STEPS}, {"steps": FakeWorkload.call.steps}]
    assert seen.active(one) is seen.seen(one) is observation
    assert observation.peak_bytes == {WHOLE: 1000}
    assert observation.counters == {"aten::mm": 3}
    assert observation.left_behind == ()
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ZeroDivisionError("one\n two"), "fake-tried: raised ZeroDivisionError: one two"),
        (ValueError(), "fake-tried: raised ValueError: no message"),
        (WorkloadError("No such folder."), "fake-tried: No such folder."),
        (MemoryError("huge"), "fake-tried: ran out of memory on fake (huge); free memory, or"),
        (RuntimeError("CUDA out of memory."), "fake-tried: ran out of memory on fake"),
    ],
)
def test_a_technique_that_raises_is_broken_with_one_sentence(
    error: Exception, sentence: str
) -> None:
    caught = failure(scenario(raising(error)))
    assert caught.outcome is Outcome.BROKEN
    assert str(caught).startswith(sentence)


def test_a_technique_that_raises_before_its_pipeline_is_ready_is_broken_too() -> None:
    def enter() -> None:
        raise KeyError("unet")

    assert failure(scenario(draw, enter=enter)).outcome is Outcome.BROKEN


def test_a_very_long_message_is_shortened() -> None:
    assert len(str(failure(scenario(raising(RuntimeError("x" * 10_000)))))) < 500


def test_an_interrupt_is_no_broken_scenario() -> None:
    with pytest.raises(KeyboardInterrupt):
        bench().active(scenario(raising(KeyboardInterrupt())))


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 1 byte"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried 1 byte"), True),
        (OSError("[Errno 12] Cannot allocate memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
    ],
)
def test_an_exhausted_memory_is_told_from_other_failures(
    error: BaseException, is_memory: bool
) -> None:
    assert is_out_of_memory(error) is is_memory


def test_after_running_out_of_memory_the_next_scenario_runs_and_the_failure_is_remembered() -> None:
    calls: list[str] = []

    def call(**_: Any) -> Any:
        calls.append("tried")
        raise MemoryError("huge")

    seen, broken = bench(), scenario(call)
    first = failure(broken, seen)
    assert seen.active(scenario(draw, name="next")).peak_bytes == {WHOLE: 1000}
    assert str(failure(broken, seen)) == str(first)
    assert calls == ["tried"]
    assert seen.seen(broken) is None


@pytest.mark.parametrize("chained", [False, True], ids=["plain", "chained"])
def test_the_memory_of_a_failed_call_is_released(chained: bool) -> None:
    held: list[weakref.ref[Weights]] = []

    def inner() -> None:
        weights = Weights()
        held.append(weakref.ref(weights))
        raise MemoryError("huge")

    def call(**_: Any) -> Any:
        activations = Weights()
        held.append(weakref.ref(activations))
        if not chained:
            inner()
        try:
            inner()
        except MemoryError as error:
            raise RuntimeError("wrapped: out of memory") from error

    seen = bench()
    with contextlib.suppress(ScenarioError):
        seen.active(scenario(call))
    assert len(held) == 2
    assert [reference() for reference in held] == [None, None]


def test_the_pipeline_of_a_failed_call_is_released() -> None:
    held: list[weakref.ref[Weights]] = []

    def make() -> Scenario:
        weights = Weights()
        held.append(weakref.ref(weights))

        def call(**_: Any) -> Any:
            raise MemoryError(str(weights))

        return scenario(call)

    seen = bench()
    with contextlib.suppress(ScenarioError):
        seen.active(make())
    gc.collect()
    assert held[0]() is None


def test_a_technique_that_is_not_in_effect_is_not_active_and_says_what_is_missing() -> None:
    caught = failure(scenario(draw, complaint="the UNet is in fp32"))
    assert caught.outcome is Outcome.NOT_ACTIVE
    assert str(caught) == "fake-tried: not in effect: the UNet is in fp32"


def test_a_switch_that_is_left_behind_is_reported() -> None:
    import torch

    before = torch.backends.mkldnn.enabled

    def flip() -> None:
        torch.backends.mkldnn.enabled = not before  # type: ignore[assignment]

    try:
        observation = observe(scenario(draw, enter=flip), FakeDevice())  # type: ignore[arg-type]
    finally:
        torch.backends.mkldnn.enabled = before  # type: ignore[assignment]
    (left,) = observation.left_behind
    assert left == f"torch.backends.mkldnn.enabled: {before} -> {not before}"


# Likeness


class Drawn(Scenario):
    """A scenario whose reference is a fake, too."""

    @property
    def reference(self) -> Scenario:
        return scenario(draw, name="fp32")


def _likeness(pictures: Any) -> float:
    one = scenario(lambda **_: pictures)
    return bench().ssim(Drawn(one.workload, one.technique))


def test_equal_pictures_have_likeness_one() -> None:
    assert _likeness(PICTURES.copy()) == 1.0


@pytest.mark.parametrize(
    ("pictures", "complaint"),
    [
        (PICTURES * np.nan, "fake-tried: picture 1 of 2 has NaN"),
        (PICTURES * 0, "fake-tried: picture 1 of 2 is black"),
        (PICTURES[:1], "fake-tried: pictures have shape"),
    ],
)
def test_pictures_that_cannot_be_compared_are_broken(pictures: Any, complaint: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        _likeness(pictures)
    assert caught.value.outcome is Outcome.BROKEN
    assert str(caught.value).startswith(complaint)


def test_an_observation_is_a_record_that_does_not_change() -> None:
    observation = bench().active(scenario(draw))
    assert isinstance(observation, Observation)
    with pytest.raises(AttributeError):
        observation.call_s = 0.0  # type: ignore[misc]
