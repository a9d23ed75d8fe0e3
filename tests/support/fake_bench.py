"""A bench that measures nothing, so that runs of the suite cost nothing.

`pytest perf_tests -p tests.support.fake_bench` takes every figure from the scenario's name. The
environment breaks single scenarios: `FAKE_MORE` does more work than before, `FAKE_CALLS` calls more
Python in every step, `FAKE_SLOW` takes half as long again, `FAKE_IDLE` is not in effect (for the
reason `FAKE_IDLE_SAYS`), `FAKE_LEAK` leaves memory allocated, `FAKE_PALE` draws a paler image,
`FAKE_HANG` never returns, `FAKE_RAISES` raises, and `FAKE_CRASH` ends the process. `FAKE_KNOWN` is
known not to be in effect. The frozen reference draws what every scenario draws. `FAKE_HARDWARE` is
what the device is called, `FAKE_SETS` its instruction sets, and `FAKE_LACKS` what it lacks besides;
with `FAKE_SHARES_CORE` processes share a core of it. With `FAKE_ACCELERATORS` there are so many of
them, and each observation adds a line with its worker and its accelerator to the file `FAKE_LOG`.

PYTEST_DONT_REWRITE: tests import it before a run in their process does, and it asserts nothing.
"""

from __future__ import annotations

import io
import os
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures.catalogue.matrix import Scenario
from fixtures.devices import host
from fixtures.devices.host import VISIBLE
from fixtures.records.counts import Counts
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.records.record import LEAK
from fixtures.records.run import WHOLE
from fixtures.worker.observation import Observation
from fixtures.worker.protocol import Facts
from tests.support.counting import counts, host_calls
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import IMAGES, AnswersAtOnce, observation
from tests.support.fake_timed import FakeTimed

KEY = "fake"
ISSUE = "https://github.com/huggingface/diffusers/issues/0"
IDLE = "it does nothing"
PLUGIN = ("-p", "tests.support.fake_bench")
OPTIONS = (*PLUGIN, "--perf-device", "simulated", "--perf-workload", "storybook")
"""Of a run on it."""
PATCH = pytest.MonkeyPatch()
if "FAKE_ACCELERATORS" in os.environ:
    # At once: accelerators are counted before plugins are configured.
    PATCH.setattr(host, "_cuda_devices", lambda: int(os.environ["FAKE_ACCELERATORS"]))
    PATCH.setattr(host, "_torch_is_built_for_cuda", lambda: True)


def _facts() -> Facts:
    hardware: dict[str, Any] = {"accelerator": os.environ.get("FAKE_HARDWARE", "Testron 9000")}
    if sets := os.environ.get("FAKE_SETS"):
        hardware["instruction_sets"] = sets.split()
    lacking = os.environ.get("FAKE_LACKS")
    device = FakeDevice(
        name="simulated",
        key=KEY,
        memory_source="replay",
        shares_core="FAKE_SHARES_CORE" in os.environ,
        hardware=hardware,
        lacks={
            "accelerator": "needs an accelerator",
            "xformers": "xFormers is not installed",
            **({lacking: f"it has no {lacking}"} if lacking else {}),
        },
    )
    return Facts.of(device)


def _is(scenario: Scenario, variable: str) -> bool:
    return scenario.id == os.environ.get(variable)


def _figure(scenario: Scenario) -> int:
    """A number below 2**20 that stands for the technique."""
    return zlib.crc32(scenario.technique.id.encode()) % 2**20


def _observe(scenario: Scenario) -> Observation:
    if "FAKE_LOG" in os.environ:
        worker, own = (os.environ.get(name) for name in ("PYTEST_XDIST_WORKER", VISIBLE))
        with Path(os.environ["FAKE_LOG"]).open("a", encoding="utf-8") as log:
            log.write(f"{worker} {own} {scenario.id}\n")
    if _is(scenario, "FAKE_HANG"):
        time.sleep(600)
    if _is(scenario, "FAKE_CRASH"):
        os._exit(1)
    if _is(scenario, "FAKE_RAISES"):
        raise ScenarioError(scenario.id, Outcome.BROKEN, "raised E (diffusers/models/a.py:12)")
    figure = 2**20 + _figure(scenario)
    # One scenario is not counted, which leaves a note.
    counted = scenario.technique.id != "traced_unet"
    more = 1 if _is(scenario, "FAKE_MORE") else 0
    return observation(
        scenario.id,
        component_peak_bytes={WHOLE: figure, "denoiser": figure // 2},
        counts=(counts(mm=figure + more, add=3) if counted else Counts()).beside(
            host_calls(figure % 1000 + (50 if _is(scenario, "FAKE_CALLS") else 0))
        ),
        images=IMAGES[:1] * (0.98 if _is(scenario, "FAKE_PALE") else 1.0),
        inactive=os.environ.get("FAKE_IDLE_SAYS", IDLE) if _is(scenario, "FAKE_IDLE") else None,
        faults={LEAK: "a call left 2.00 MiB allocated"} if _is(scenario, "FAKE_LEAK") else {},
    )


def _ratio(scenario: Scenario) -> float:
    """Its latency as a multiple of the reference's, from 0.5 to 1.5; half as much again if slow."""
    return (0.5 + _figure(scenario) / 2**20) * (1.5 if _is(scenario, "FAKE_SLOW") else 1.0)


def _timed_task(worker: object, scenario: Scenario, action: str = "time") -> FakeTimed:
    """Times the scenario, or its reference."""
    return FakeTimed(lambda n: 0.1 * (_ratio(scenario) if action == "time" else 1.0))


def compiled(scenario: Scenario) -> Counts:
    """What compiling comes to, which a test says."""
    raise NotImplementedError


class _Worker(AnswersAtOnce):
    """A worker that measures nothing."""

    def __init__(self, settings: object) -> None:
        pass

    def ask(self, action: str, expected: type, *asked: Any) -> Any:
        """The device, or what it shows of a scenario; the frozen reference draws what all draw."""
        if action == "facts":
            return _facts()
        if action == "draw frozen":
            file = io.BytesIO()
            np.save(file, IMAGES[:1])
            file.seek(0)
            return file
        return {"observe": _observe, "compile": compiled}[action](*asked)

    def close(self) -> None:
        """Nothing to end."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put the fakes in the place of everything that measures."""
    # By name: pytest rewrites the plugin's assertions, and that must come before its import.
    PATCH.setattr("fixtures.suite.session.Worker", _Worker)
    PATCH.setattr("fixtures.worker.sampling.TimedTask", _timed_task)
    for judging in ("suite.cases", "commands.refresh"):
        PATCH.setattr(f"fixtures.{judging}.timing_of", lambda *_: {"steps": 1})
    # What was measured of real images says nothing of these.
    PATCH.setattr("fixtures.catalogue.matrix.harmless_variation", lambda *_: {})

    if scenario := os.environ.get("FAKE_KNOWN"):
        from fixtures.suite.known_issues import KnownIssue

        issue = KnownIssue(scenario, {"torch": ">=2"}, IDLE, ISSUE)
        PATCH.setattr("fixtures.suite.known_issues.KNOWN_ISSUES", [issue])


def pytest_unconfigure() -> None:
    """Take the fakes away again: this process may go on."""
    PATCH.undo()
