"""The server of a side: every failure responds with its reason, and what is timed is let go of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from fixtures.commands.compare import side_server
from fixtures.commands.compare.messages import (
    RESPONSE,
    Action,
    Opened,
    Recording,
    Request,
    Response,
)
from fixtures.commands.compare.side_server import SideServer
from fixtures.measuring.observation import Observation
from fixtures.measuring.observations import Observations
from fixtures.measuring.rounds import Round
from fixtures.records.images import Images
from fixtures.records.outcome import Outcome, ScenarioError, Verdict
from fixtures.records.timing import Evidence
from fixtures.scenarios import Scenario
from fixtures.workloads import Workload
from fixtures.workloads.layouts import Layout
from tests.support.counting import counted
from tests.support.fake_device import FakeDevice

NOISE = np.random.default_rng(0).random((1, 16, 16, 3)).astype(np.float32)
Serve = Callable[..., SideServer]


def observation(
    scenario: Scenario, images: Images = NOISE, inactive: str | None = None
) -> Observation:
    counts = counted({}, {"aten::mm": 3})
    return Observation(
        scenario=scenario.id,
        component_peak_bytes={"whole": 1000},
        counts=counts,
        call_s=1.0,
        images=images,
        inactive=inactive,
        carried_over="",
        left_behind=(),
    )


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Serves what this observer sees of a scenario that is not the reference."""

    def server(
        observer: Callable[[Scenario], Observation] = observation, device: FakeDevice | None = None
    ) -> SideServer:
        def observe(scenario: Scenario, _: object) -> Observation:
            return observation(scenario) if scenario.is_reference else observer(scenario)

        return SideServer(Observations(device or FakeDevice(), observe), tmp_path)

    return server


def content(server: SideServer, action: Action = "record", technique: str = "bf16") -> object:
    """What it responds with, as the other end reads it."""
    response = server.respond(Request(action, "storybook", technique))
    return RESPONSE.load(RESPONSE.dump(response), "the response").content


def test_a_recording_has_the_record_the_plan_and_the_images(serve: Serve) -> None:
    recording = content(serve())
    assert isinstance(recording, Recording)
    assert recording.record.id == "storybook-bf16"
    assert recording.record.peak_bytes == 1000
    assert recording.record.ssim == pytest.approx(1.0)
    assert recording.plan is not None
    assert recording.images is not None
    assert np.array_equal(np.load(recording.images), NOISE)
    blind = content(serve(device=FakeDevice(lacks={"images": "nothing is computed"})))
    assert isinstance(blind, Recording)
    assert blind.plan is not None
    assert blind.images is None


def fails(scenario: Scenario) -> Observation:
    raise ScenarioError(scenario.id, Outcome.BROKEN, "raised ValueError: no")


def told(response: object) -> tuple[Outcome, str]:
    """What a response says of a failure."""
    assert isinstance(response, Verdict)
    return response.outcome, response.text


def idle(scenario: Scenario) -> Observation:
    return observation(scenario, inactive="no layer was sliced")


def black(scenario: Scenario) -> Observation:
    return observation(scenario, np.zeros_like(NOISE))


@pytest.mark.parametrize(
    ("observer", "failure"),
    [
        (fails, (Outcome.BROKEN, "raised ValueError: no")),
        (idle, (Outcome.NOT_ACTIVE, "not in effect: no layer was sliced")),
        (black, (Outcome.BROKEN, "image 1 of 1 is black")),
    ],
)
def test_a_failure_is_its_outcome_and_its_reason_without_the_name(
    serve: Serve, observer: Callable[[Scenario], Observation], failure: tuple[Outcome, str]
) -> None:
    assert told(content(serve(observer))) == failure


def test_what_the_device_lacks_is_unsupported(serve: Serve) -> None:
    server = serve(fails, FakeDevice(lacks={"accelerator": "it is a CPU"}))
    found = content(server, technique="sequential_cpu_offload")
    assert told(found) == (Outcome.UNSUPPORTED, "it is a CPU")


def test_a_side_says_its_device_and_whether_it_can_time(serve: Serve) -> None:
    for lacks, has_clock in (({}, True), ({"clock": "nothing runs"}, False)):
        facts = serve(device=FakeDevice(lacks=lacks, shares_core=has_clock)).facts()
        found = RESPONSE.load(RESPONSE.dump(Response(facts)), "the response").content
        assert isinstance(found, Opened)
        assert (found.device, found.has_clock) == ("cpu", has_clock)
        assert found.shares_core == has_clock
        assert found.run.device_key == "fake"
        assert "torch" in found.run.software


EVIDENCE = Evidence(load=0.5, steal=0.0, cpu_share=0.4)


class FakeProcess:
    """A fresh process, each with a number of its own, whose rounds last a second, or fail."""

    made: ClassVar[list[FakeProcess]] = []
    fails = False

    def __init__(self, scenario: Scenario, device: str) -> None:
        self.scenario = scenario
        self.is_open = True
        self.made.append(self)
        self.pid = len(self.made)

    def place(self) -> None:
        """Always there."""

    def round(self) -> Round:
        if self.fails:
            raise ScenarioError(self.scenario.id, Outcome.BROKEN, "its process ended with SIGKILL")
        return Round(1.0, 2.0)

    def start_calls(self) -> None:
        self.calls = [Round(1.0, 2.0), Round(3.0, 4.0)]

    def stop_calls(self) -> list[Round]:
        return self.calls

    def evidence(self) -> Evidence:
        return EVIDENCE

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[FakeProcess]:
    """The fresh processes that were made."""
    monkeypatch.setattr(FakeProcess, "made", [])
    monkeypatch.setattr(side_server, "FreshProcess", FakeProcess)
    return FakeProcess.made


def test_a_scenario_is_timed_in_one_fresh_process_until_it_is_closed(
    serve: Serve, processes: list[FakeProcess]
) -> None:
    server = serve()
    assert content(server, "place") == 1
    assert content(server, "round") == Round(1.0, 2.0)
    assert content(server, "evidence") == EVIDENCE
    assert content(server, "start") is None
    assert content(server, "stop") == (Round(1.0, 2.0), Round(3.0, 4.0))
    assert content(server, "close") is None
    assert content(server, "place") == 2
    assert [process.is_open for process in processes] == [False, True]


def test_a_process_that_fails_is_let_go_of(
    serve: Serve, processes: list[FakeProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeProcess, "fails", True)
    server = serve()
    content(server, "place")
    crash = (Outcome.BROKEN, "its process ended with SIGKILL")
    assert told(content(server, "round")) == crash
    assert not processes[0].is_open


def drawn(serve: Serve, monkeypatch: pytest.MonkeyPatch, pipeline: str) -> tuple[object, list[Any]]:
    """What a side responds with whose diffusers has such a pipeline or not, and its calls."""
    calls: list[Any] = []

    def load(self: Workload, dtype: torch.dtype) -> Any:
        Layout(pipeline, {}, {}).pipeline_class()
        return torch.nn.Identity()

    def draw(self: Workload, pipeline: object, **changes: Any) -> Images:
        calls.append(changes)
        return NOISE

    monkeypatch.setattr(Workload, "load", load)
    monkeypatch.setattr(Workload, "draw", draw)
    return content(serve(), "draw", "fp32"), calls


def test_a_short_call_is_made_and_nothing_said(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert drawn(serve, monkeypatch, "DiffusionPipeline") == (None, [{"steps": 2, "frames": 1}])


def test_a_release_says_itself_that_it_has_no_such_pipeline(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure, calls = drawn(serve, monkeypatch, "PipelineOfTomorrow")
    assert isinstance(failure, Verdict)
    assert failure.outcome is Outcome.UNSUPPORTED
    assert "has no PipelineOfTomorrow; choose a release that has it" in failure.text
    assert not calls
