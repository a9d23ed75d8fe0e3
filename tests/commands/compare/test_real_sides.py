"""Real sides of this environment: equal to themselves, and found out where one does more work."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, nullcontext
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from diffusers import AutoencoderKL, FluxTransformer2DModel, UNet2DConditionModel

from fixtures.catalogue.matrix import Scenario
from fixtures.catalogue.workloads import WORKLOADS
from fixtures.catalogue.workloads.twins import twin_of
from fixtures.commands.compare import __main__ as command
from fixtures.commands.compare.comparing import Compared, Comparing
from fixtures.commands.compare.side import Side
from fixtures.metrics.limits import Limits
from fixtures.metrics.values import ROUNDING
from fixtures.records.outcome import Outcome
from fixtures.settings import Settings
from fixtures.worker import tasks
from fixtures.worker.client import Worker
from fixtures.worker.protocol import Action, Opening, Task
from fixtures.worker.rounds import Plan
from fixtures.worker.sampling import time_pair
from tests.support.answers import answer_to
from tests.support.fake_scenarios import AnswersAtOnce
from tests.support.patched_python import command as patched_command
from tests.support.patched_python import copying
from tests.support.scenarios import find_scenario
from tests.support.simulated_runs import small

SDPA = find_scenario("storybook", "sdpa")
EXACT = ("peak_memory", "counts", "images")
Here = Callable[[str, str], Side]


def compared(base: Side, head: Side, scenario: Scenario) -> Compared:
    limits = Limits(exact=True)
    return Comparing(base, head, EXACT, limits).run([scenario])


decode = AutoencoderKL.decode


def keeping(self: Any, *arguments: Any, **options: Any) -> Any:
    """Decode, and keep every result."""
    results = vars(self).setdefault("results", [])
    results.append(decode(self, *arguments, **options))
    return results[-1]


def scaling(self: Any, latents: Any, *arguments: Any, **options: Any) -> Any:
    return decode(self, 1.01 * latents, *arguments, **options)


forward_of_flux = FluxTransformer2DModel.forward


def reversing(self: Any, *arguments: Any, **options: Any) -> Any:
    """Run with the text's tokens in another order, by which nothing but sums change theirs."""
    tokens = options.pop("encoder_hidden_states").flip(1)
    return forward_of_flux(self, *arguments, encoder_hidden_states=tokens, **options)


make_flux = FluxTransformer2DModel.__init__


@wraps(make_flux)
def renaming(self: Any, *arguments: Any, **options: Any) -> None:
    make_flux(self, *arguments, **options)
    self.embedder = self._modules.pop("x_embedder")


CHANGES: dict[str, list[tuple[type, str, Any]]] = {
    "sound": [],
    "copy": [(UNet2DConditionModel, "forward", copying(UNet2DConditionModel.forward))],
    "keep": [(AutoencoderKL, "decode", keeping)],
    "scale": [(AutoencoderKL, "decode", scaling)],
    "rename and scale": [
        (FluxTransformer2DModel, "__init__", renaming),
        (FluxTransformer2DModel, "x_embedder", property(lambda self: self.embedder)),
        (AutoencoderKL, "decode", scaling),
    ],
    "reverse": [(FluxTransformer2DModel, "forward", reversing)],
}


class WorkerHere(AnswersAtOnce):
    """A worker in this process, whose diffusers has the change that it is named after."""

    both = threading.Lock()

    def __init__(self, change: str, device: str, folder: Path) -> None:
        self.settings = Settings(device=device)
        self.changes = CHANGES[change]
        self.opening = Opening(device, "h200", "", str(folder / change))
        (folder / change).mkdir()
        tasks._known.cache_clear()  # what a test calls `small` is not another one's

    def ask(
        self, action: Action, expected: type, scenario: Scenario | None = None, base: str = ""
    ) -> Any:
        """What it answers, as the other end of a channel reads it."""
        names = (scenario.workload.name, scenario.technique.id) if scenario else ("", "")
        with self.both, pytest.MonkeyPatch.context() as patch:
            for where, name, change in self.changes:
                patch.setattr(where, name, change, raising=False)
            content = answer_to(Task(action, self.opening, *names, base=base))
        assert isinstance(content, expected)
        return content


@pytest.fixture
def here(tmp_path: Path) -> Here:
    """A side in this process."""

    def made(change: str, device: str) -> Side:
        return Side(WorkerHere(change, device, tmp_path))  # type: ignore[arg-type]

    return made


def test_a_copy_of_the_denoisers_input_is_found_and_everything_else_is_equal(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WORKLOADS, "small", small())
    sides = here("sound", "simulated"), here("copy", "simulated")
    result = compared(*sides, find_scenario("small", "fp32"))
    failed = {figure.metric: figure for figure in result.failed}
    assert failed["operations"].detail == "clone +3 (+1 a step) in UNet2DConditionModel"
    assert failed.keys() == {"operations", "bytes moved", "peak memory (denoiser)"}
    others = [figure for figure in result.verdicts if figure.metric not in failed]
    assert "peak memory" in {figure.metric for figure in others}
    assert all(figure.baseline == figure.measured for figure in others)


def test_a_vae_that_keeps_its_results_is_found_on_the_cpu(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WORKLOADS, "small", small(batch=2))
    sides = here("sound", "cpu"), here("keep", "cpu")
    result = Comparing(*sides, ("faults",), Limits()).run([find_scenario("small", "fp32")])
    (leak,) = result.failed
    assert leak.metric == "faults (leak)"
    assert leak.sentence == (
        "small-fp32: a call left 0.38 MiB allocated; still alive: 1 x float32 (2, 3, 128, 128)"
    )
    assert result.verdicts == result.failed


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_a_twin_finds_latents_out_of_scale_in_the_picture_and_lets_rounding_pass(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WORKLOADS, "flux-twin", twin_of("flux"))
    base, scenario = here("sound", "cpu"), find_scenario("flux-twin", "fp32")

    def compared_with(change: str) -> Compared:
        monkeypatch.setitem(WORKLOADS, "flux-twin", twin_of("flux"))  # nothing of it is kept
        metrics = ("values", "faults")
        comparing = Comparing(base, here(change, "cpu"), metrics)
        return comparing.run([scenario])

    rounding, faults = compared_with("reverse").verdicts
    assert faults.baseline == faults.measured == 0
    assert rounding.outcome is Outcome.PASS
    assert rounding.measured is not None
    assert 0 < rounding.measured < ROUNDING / 10
    [failed] = compared_with("scale").failed
    assert "std in the short prompt, the picture (limit" in failed.sentence
    [failed] = compared_with("rename and scale").failed  # and the latents of every step are equal
    assert "std in the short prompt, the picture (limit" in failed.sentence
    assert failed.sentence.endswith(
        "; by their order head's transformer/embedder.weight (32, 64) and 1 more took the weights "
        "of base's others"
    )


@pytest.fixture(scope="module")
def side() -> Iterator[Callable[[str], Side]]:
    """Starts real sides: sound ones, and one whose denoiser runs twice."""
    made: dict[str, Side] = {}
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")

        def start(name: str) -> Side:
            if name not in made:
                python = patched_command("twice") if name == "twice" else [sys.executable]
                worker = Worker(
                    Settings(device="cpu"), python, "base" if name == "base" else "head"
                )
                made[name] = Side(stack.enter_context(closing(worker)))
            return made[name]

        yield start


@pytest.mark.long
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
    side: Callable[[str], Side], shares_core: bool, references: int
) -> None:
    sound, twice = side("head"), side("twice")
    for base, head, sign in ((sound, twice, 1), (twice, sound, -1)):
        pair = base.timed(SDPA), head.timed(SDPA)
        timing = time_pair(SDPA, Plan(2, 1), *pair, shares_core=shares_core)
        assert [len(group.reference_s) for group in timing.groups] == [references] * 2
        assert sign * timing.sample.log_ratio > math.log(1.3)


@pytest.mark.long
def test_the_command_finds_two_equal_sides_equal_and_says_so_by_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    here = nullcontext(Path(sys.executable))
    monkeypatch.setattr("fixtures.commands.compare.side.environment", lambda requirements: here)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    arguments = ["--base", "diffusers==0.42.1", "--head", "diffusers==0.42.1"]
    options = ["--perf-device", "cpu", "-k", "[storybook-sdpa]"]
    options += [word for metric in EXACT for word in ("--metric", metric)]
    report = ["--perf-report", str(tmp_path / "report")]
    assert command.main([*arguments, *options, *report, "--exact"]) == 0
    said = capsys.readouterr().out
    assert "0 findings: 0 failed" in said
    assert "1 scenario compared, 0 not" in said
    assert (tmp_path / "report" / "report.html").is_file()
    assert command.main([*arguments, "-k", "nothing"]) == 2
    assert "no scenario is selected by" in capsys.readouterr().err
    assert command.main([*arguments, *options, "--perf-device", "gpu"]) == 2
    assert "--perf-device 'gpu' is unknown" in capsys.readouterr().err
