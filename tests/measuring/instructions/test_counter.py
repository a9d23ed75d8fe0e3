"""The counter beside servers that respond, refuse, crash and hang; no Valgrind runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fixtures.devices import needs
from fixtures.devices.cpu import CpuDevice
from fixtures.measuring.instructions import counter as module
from fixtures.measuring.instructions import pins
from fixtures.measuring.instructions.build import build_of
from fixtures.measuring.instructions.counter import InstructionCounter, uncounted
from fixtures.measuring.instructions.server import counted
from fixtures.measuring.instructions.valgrind import Requests
from fixtures.records.host_work import STEP
from fixtures.records.instructions import CALL, KERNELS, PYTHON
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.scenarios import find_scenario

SERVER = """
import json, os, socket, sys, time
path, folder = sys.argv[1:]
print("starting", flush=True)
{at_start}
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen()
pid = 0
while True:
    connection, _ = server.accept()
    request = json.loads(connection.makefile().readline())
    pid += 1
    for number in (1, 2):
        with open(f"{{folder}}/{{pid}}.{{number}}", "w") as dump:
            kernels = number * 1000 - (1 if request["frozen"] else 0)
            print(f"ob=libtorch_cpu.so\\nfn=add\\n0 {{kernels}}", file=dump)
            print(f"ob=python3.11\\nfn=call\\n0 {{number * 70 + 30}}", file=dump)
    response = {{"pid": pid}}
    {before}
    print("asked", request, flush=True)
    connection.sendall(json.dumps(response).encode() + b"\\n")
    connection.close()
"""
FP32 = find_scenario("storybook", "fp32")
BUILD = {"python": "3.11.7 (0a1b)", "torch": "2.13.0 (2c3d)"}


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Opens counters whose server runs this code at its start, and before each response."""
    counters: list[InstructionCounter] = []

    def opened(before: str = "", at_start: str = "") -> InstructionCounter:
        code = SERVER.format(before=before or "pass", at_start=at_start)

        def command(python: str, folder: Path, arguments: list[str]) -> list[str]:
            return [python, "-c", code, arguments[1], str(folder)]

        monkeypatch.setattr(module, "command", command)
        monkeypatch.setattr(module, "build_of", lambda python: BUILD)
        monkeypatch.setattr(needs, "missing_valgrind", lambda: None)
        counters.append(InstructionCounter(CpuDevice()))
        return counters[-1]

    yield opened
    for each in counters:
        each.close()


def refusal(counter: InstructionCounter) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        counter.count(FP32)
    assert str(caught.value).startswith("storybook-fp32: ")
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_step_and_a_call_are_told_apart_and_the_frozen_reference_counted_once(
    counting: Any,
) -> None:
    counter = counting()
    with ThreadPoolExecutor(2) as pool:
        first, _ = pool.map(counter.count, [FP32, find_scenario("storybook", "tiny_vae")])
    assert first.call == {KERNELS: 2000, PYTHON: 170}
    assert first.step == {KERNELS: 1000, PYTHON: 70}
    assert first.frozen == {STEP: 1000, CALL: 1999}
    assert first.of(KERNELS, CALL) == 1
    assert first.functions == {KERNELS: {"add": 2000}, PYTHON: {"call": 170}}
    assert first.build == BUILD
    log = counter._log.read_text()
    assert log.count("asked") == 3
    assert log.count("'frozen': True") == 1
    assert [path.name for path in counter._place.glob("[0-9]*")] == []


@pytest.mark.parametrize(
    ("server", "says"),
    [
        (
            {"before": 'response = {"pid": pid, "outcome": "broken", "reason": "raised KeyError"}'},
            "raised KeyError",
        ),
        (
            {"before": 'print("valgrind: the impossible", flush=True); os._exit(1)'},
            "ended without a response: valgrind: the impossible",
        ),
        ({"before": 'response = {"pid": 99}'}, "what Callgrind wrote cannot be read"),
        ({"at_start": "sys.exit('no torch')"}, "ended with code 1: no torch"),
        ({"before": "time.sleep(60)"}, "took more than 1 s"),
        ({"at_start": "time.sleep(60)"}, "took more than 1 s to start"),
    ],
)
def test_a_server_that_fails_is_one_sentence(
    server: dict[str, str], says: str, counting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LIMIT_S", 1.0)
    monkeypatch.setattr(module, "START_LIMIT_S", 1.0 if "start" in says else 60.0)
    error = refusal(counting(**server))
    assert error.outcome is Outcome.BROKEN
    assert says in error.reason


def test_after_a_crash_another_server_starts(counting: Any, tmp_path: Path) -> None:
    mark = tmp_path / "crashed"
    crash = f"os.path.exists({str(mark)!r}) or (open({str(mark)!r}, 'w'), os._exit(1))"
    counter = counting(before=crash)
    refusal(counter)
    assert counter.count(FP32).call[KERNELS] == 2000


@pytest.mark.parametrize(
    ("technique", "says"),
    [
        ("bf16", "half precision is emulated"),
        ("autocast", "half precision is emulated"),
        ("torch_compile", "compiled code"),
        ("layerwise_casting", None),
        ("channels_last", None),
    ],
)
def test_what_would_not_repeat_elsewhere_is_not_counted(
    technique: str, says: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "missing_valgrind", lambda: None)
    reason = uncounted(find_scenario("storybook", technique), CpuDevice())
    assert (says in reason) if says and reason else says is reason


def test_without_valgrind_the_reason_is_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with closing(InstructionCounter(CpuDevice())) as counter:
        error = refusal(counter)
    assert error.outcome is Outcome.UNSUPPORTED
    assert "apt-get install valgrind" in error.reason
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert CpuDevice().missing("instructions") == "instructions are counted only on x86-64 Linux"


def test_a_counted_process_inherits_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", "/models")
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    monkeypatch.setenv("A_LONG_ONE", "x" * 5000)
    made = pins.environment()
    assert made["HF_HOME"] == "/models"
    assert made["OMP_NUM_THREADS"] == "1"
    assert "A_LONG_ONE" not in made


def test_calls_are_counted_after_one_that_warms_up(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    monkeypatch.setattr(Requests, "__init__", lambda self: None)
    for name in ("start", "toggle", "dump"):
        monkeypatch.setattr(Requests, name, lambda self, name=name: events.append(name))
    for name in ("collect", "freeze", "disable"):
        monkeypatch.setattr(f"gc.{name}", lambda name=name: events.append(name))
    counted(lambda steps: events.append(f"call {steps}"))
    one, two = (["toggle", f"call {steps}", "toggle", "dump"] for steps in (1, 2))
    assert events == ["call 1", "collect", "freeze", "disable", "start", *one, *two]


@pytest.mark.skipif(needs.missing_valgrind() is not None, reason="x86-64 Linux with Valgrind")
def test_requests_do_nothing_without_valgrind_and_builds_have_digests() -> None:
    requests = Requests()
    for request in (requests.start, requests.toggle, requests.dump):
        request()
    build = build_of(sys.executable)
    assert set(build) == {"python", "libc", "valgrind", "torch"}
    assert all(any(letter.isdigit() for letter in text) for text in build.values())
