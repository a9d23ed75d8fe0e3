"""A worker: what happens to a task is its own, and the next one is done as if nothing had been."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fixtures.catalogue.own import load
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.settings import REPOSITORY, Settings
from fixtures.worker.client import Worker
from fixtures.worker.observation import Observation
from fixtures.worker.protocol import Facts
from fixtures.worker.sampling import TimedTask
from tests.support.own_catalogue import WORKLOAD, nothing_kept, written
from tests.support.running import own_environment
from tests.support.scenarios import find_scenario

HARMS = Path(__file__).with_name("faulty_techniques.py")
LIMIT_S = 60.0
Harm = Callable[..., str]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where all that a worker writes goes; a socket's path there is no longer than it may be."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def worker(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """One that knows a small workload, and techniques that do harm."""
    own = written(tmp_path_factory.mktemp("own"), WORKLOAD, "own_workload.py")
    with pytest.MonkeyPatch.context() as patch, nothing_kept(patch):
        patch.setattr(tempfile, "tempdir", str(folder))
        load([own, HARMS])
        with closing(Worker(Settings(device="cpu"), limit_s=LIMIT_S)) as made:
            yield made


@pytest.fixture
def harm(worker: Worker, folder: Path) -> Harm:
    """What becomes of a scenario that does harm; nothing of it is left."""

    def reason(name: str, limit_s: float = LIMIT_S) -> str:
        before = left(folder)
        observed(worker)  # a template does what follows
        worker.limit_s = limit_s
        with pytest.raises(ScenarioError) as caught:
            worker.ask("observe", Observation, find_scenario("storybook-tiny", name))
        worker.limit_s = LIMIT_S
        assert caught.value.outcome is Outcome.BROKEN
        assert caught.value.scenario == f"storybook-tiny-{name}"
        assert left(folder) == before
        return caught.value.reason

    return reason


def left(folder: Path) -> set[str]:
    """Files of tasks, and numbers of processes with temporary files in the folder."""
    started = [
        process.pid
        for process in psutil.process_iter(["environ"])
        if (process.info["environ"] or {}).get("TMPDIR", "").startswith(str(folder))
    ]
    return {*map(str, started), *map(str, folder.glob("*/task-*"))}


def observed(worker: Worker) -> Observation:
    """The sound scenario."""
    return worker.ask("observe", Observation, find_scenario("storybook-tiny", "fp32"))


def test_whatever_becomes_of_a_scenario_the_next_one_is_as_before(
    worker: Worker, harm: Harm
) -> None:
    before, _ = observed(worker), observed(worker)
    assert worker.ask("facts", Facts).key == "cpu"
    reasons = {
        "crash": "its process ended with SIGSEGV: no message",
        "leave": "its process ended with code 3: the last line",
        "exit_softly": "raised SystemExit: enough",
        "be_killed": "its process ended with SIGKILL: no message",
        "exhaust_memory": "ran out of memory",
        "compute_on_threads": "raised RuntimeError: 16 of 16 computed",
        "leave_everything": "raised RuntimeError: after all that",
    }
    for name, reason in reasons.items():
        assert harm(name).startswith(reason), name
        if name == "compute_on_threads":  # fails three times of five where the pool is stale
            assert {harm(name) for _ in range(4)} == {reason}
    assert harm("hang", 3.0) == "its process gave no answer for 3 s and was ended"
    after = observed(worker)
    assert np.array_equal(np.load(after.images_file), np.load(before.images_file))
    images = {"images": before.images, "other_image": before.other_image}
    same: dict[str, Any] = {**images, "images_file": "", "call_s": 0}
    assert replace(after, **same) == replace(before, **same)
    assert os.environ["HOME"] != "/nowhere"


def test_two_processes_time_calls_one_at_a_time_and_one_after_the_other(worker: Worker) -> None:
    scenario = find_scenario("storybook-tiny", "fp32")
    with (
        contextlib.closing(TimedTask(worker, scenario)) as timed,
        contextlib.closing(TimedTask(worker, scenario, "time reference")) as reference,
    ):
        for side in (timed, reference):
            side.place()
        assert len({os.getpid(), timed.pid, reference.pid}) == 3
        assert min(timed.round().judged_s, reference.round().judged_s) > 0
        for _ in range(2):
            timed.start_calls()
            time.sleep(0.5)
            calls = timed.stop_calls()
            assert len(calls) > 1
            assert all(before.ended_s <= after.started_s for before, after in pairwise(calls))
        assert timed.evidence().startswith("load ")
    await_end(timed.pid)


def await_end(pid: int | None) -> None:
    """Wait until a process has ended; nobody may ask an orphan how."""
    until_s = time.monotonic() + LIMIT_S
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < until_s
            time.sleep(0.05)


def test_a_worker_that_ends_costs_what_it_was_doing_and_no_more(worker: Worker) -> None:
    observed(worker)
    with contextlib.closing(TimedTask(worker, find_scenario("storybook-tiny", "fp32"))) as timed:
        timed.place()
        assert timed.pid is not None
        parent = psutil.Process(timed.pid).ppid()
        os.kill(parent, signal.SIGKILL)
        with pytest.raises(ScenarioError, match=r": the worker of its process ended"):
            timed.round()
        await_end(timed.pid)
    assert observed(worker).component_peak_bytes


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("import os; os._exit(9)", "^head ended with code 9: no message$"),
        ("raise ImportError('no torch')", "^head ended with code 1: ImportError: no torch$"),
        ("send(b'Loading weights')", "^the answer of head begins with .Loading."),
        ("send(b'bool tr')", "^the answer of head is not JSON"),
        ("send(b'Verdict {}')", "^the answer of head is not an answer: at "),
        ("import time; time.sleep(600)", "^head gave no answer for 2 s$"),
    ],
)
def test_an_interpreter_that_is_of_no_use_is_said_and_not_tried_twice(
    tmp_path: Path, says: str, words: str
) -> None:
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nfrom multiprocessing.connection import Connection\n"
        f"send = Connection(int(sys.argv[-1])).send_bytes\n{says}\n"
    )
    program.chmod(0o755)
    head = Worker(Settings(), [str(program)], "head", limit_s=2.0)
    refused(head, words)


@pytest.mark.parametrize("command", ["/nowhere/bin/python", "a folder", "not executable"])
def test_an_interpreter_that_is_gone_is_said(tmp_path: Path, command: str) -> None:
    (tmp_path / "a folder").mkdir()
    (tmp_path / "not executable").write_text("")
    head = Worker(Settings(), [str(tmp_path / command)], "head")
    refused(head, r"^head cannot be started \(.*\)$")


def refused(head: Worker, words: str) -> None:
    """Each task of it fails with the same sentence, and nothing is left."""
    with closing(head), pytest.raises(ScenarioError, match=words) as first:
        head.ask("facts", Facts)
    assert (first.value.outcome, first.value.side) == (Outcome.BROKEN, "head")
    assert "\n" not in str(first.value)
    with pytest.raises(ScenarioError) as second:
        head.ask("observe", Observation, find_scenario("storybook", "fp32"))
    assert second.value is first.value


def test_what_a_device_refuses_is_its_own_sentence() -> None:
    refusing = Worker(Settings(device="simulated", profile="z80"))
    with closing(refusing), pytest.raises(ScenarioError, match="z80"):
        refusing.ask("facts", Facts)


CLIENT = """
import sys, time
from fixtures.worker.client import Worker
from fixtures.worker.protocol import Facts
from fixtures.settings import Settings
worker = Worker(Settings(device="cpu"))
worker.begin("facts")
print("begun", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_of_a_client_that_is_ended(end: signal.Signals, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        client = subprocess.Popen(
            [sys.executable, "-c", CLIENT],
            cwd=REPOSITORY,
            env={**own_environment(), "TMPDIR": folder, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with client:
            assert client.stdout
            client.stdout.readline()
            started = psutil.Process(client.pid).children(recursive=True)
            assert started
            client.send_signal(end)
        for process in started:
            await_end(process.pid)
        assert not [*Path(folder).iterdir()]
