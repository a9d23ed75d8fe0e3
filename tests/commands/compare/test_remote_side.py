"""The handle of a side outlives its process: a crash, a hang, an import that fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.commands.compare.line_process import LineProcess
from fixtures.commands.compare.messages import Recording, failure_of
from fixtures.commands.compare.remote_side import RemoteSide
from fixtures.measuring.rounds import Plan
from fixtures.records.outcome import Outcome, Reason, Remedy, ScenarioError, Side
from fixtures.records.software import installation
from fixtures.scenarios import find_scenario
from fixtures.settings import Settings
from tests.support.fake_side import in_process
from tests.support.runs import failure, scenario_record

FP32, BF16 = (find_scenario("storybook", name) for name in ("fp32", "bf16"))
Make = Callable[..., RemoteSide]


@pytest.fixture
def side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes sides of these kinds."""
    in_process(monkeypatch)

    def make(kind: str, name: Side = "head") -> RemoteSide:
        return RemoteSide(name, [kind], Settings(), tmp_path, limit_s=8.0)

    return make


def program(tmp_path: Path, lines: str, limit_s: float = 60.0) -> RemoteSide:
    """A real process, which runs these lines."""
    command = [sys.executable, "-u", "-c", f"import os, sys, time; {lines}"]
    return RemoteSide("head", command, Settings(), tmp_path, limit_s)


def test_a_side_says_what_it_is_and_responds(side: Make) -> None:
    sound = side("sound")
    assert sound.opened().run.device_key == "fake"
    assert sound.recording(BF16).plan == Plan(groups=2, pairs=2)
    timed = sound.timed(BF16)
    timed.place()
    assert timed.pid == os.getpid()
    assert timed.round().judged_s == 0.1
    assert timed.evidence().load == 0.5
    timed.close()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("crash", "head ended with code 3: the last thing it said"),
        ("hang", "head gave no response for 8 s and was ended"),
        ("garble", "head responded with Round"),
    ],
)
def test_what_went_wrong_ends_the_process_and_the_next_request_is_answered(
    side: Make, kind: str, reason: str
) -> None:
    failing = side(kind)
    with pytest.raises(ScenarioError) as caught:
        failing.ask("record", BF16, Recording)
    error = caught.value
    assert error.reason.startswith(reason)
    assert (error.scenario, error.outcome, error.side) == (BF16.id, Outcome.BROKEN, "head")
    assert not failing.is_running
    assert failing.recording(FP32).plan


def test_a_process_that_hangs_is_killed(tmp_path: Path) -> None:
    hanging = program(tmp_path, "time.sleep(600)", limit_s=0.5)
    with pytest.raises(ScenarioError, match="head gave no response for 0 s and was ended"):
        hanging.opened()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Loading weights", "the response of base is not JSON"),
        ('{"content": {"outcome": "odd", "reason": ""}}', "the response of base is not a response"),
    ],
)
def test_a_malformed_response_is_one_sentence(tmp_path: Path, line: str, words: str) -> None:
    base = RemoteSide("base", ["echo", line], Settings(), tmp_path)
    with pytest.raises(ScenarioError, match=words) as caught:
        base.opened()
    assert caught.value.side == "base"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("half", "end", "how"),
    [
        (b'{"content": {"outcome": "br', "os._exit(9)", "code 9"),
        ('"é'.encode()[:-1], "os.kill(os.getpid(), 9)", "SIGKILL"),
    ],
)
def test_half_a_line_of_a_dying_side_is_its_end(
    tmp_path: Path, half: bytes, end: str, how: str
) -> None:
    said = f"input(); print('why', file=sys.stderr); os.write(1, {half!r}); {end}"
    with pytest.raises(ScenarioError, match=f"^head ended with {how}: why$"):
        program(tmp_path, said).opened()


def test_what_is_not_text_is_no_response(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="the response of head is not JSON"):
        program(tmp_path, "input(); os.write(1, b'\\xff\\xfe\\n')").opened()


@pytest.mark.parametrize("command", ["/nowhere/bin/python", "a folder", "not executable"])
def test_an_interpreter_that_is_gone_is_said_and_not_tried_twice(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "a folder").mkdir()
    (tmp_path / "not executable").write_text("")
    head = RemoteSide("head", [str(tmp_path / command)], Settings(), tmp_path)
    with pytest.raises(ScenarioError, match=r"^head cannot be started \(.*\)$") as first:
        head.opened()
    with pytest.raises(ScenarioError) as second:
        head.opened()
    assert second.value is first.value
    assert failure_of(head.recording(FP32).record)


def test_of_a_missing_library_the_side_names_no_command_for_its_own_environment() -> None:
    missing = Reason("needs torchao", Remedy(installation("torchao")))
    record = scenario_record("bf16", unsupported=missing)
    assert failure_of(record) == failure(Outcome.UNSUPPORTED, "needs torchao", BF16.id)


def test_a_failure_is_a_recording_with_its_reason(side: Make) -> None:
    absent = side("absent").recording(BF16)
    reason = "needs diffusers 0.33 or later, this is 0.30.0"
    assert failure_of(absent.record) == failure(Outcome.UNSUPPORTED, reason, BF16.id)
    assert absent.run.software == {"diffusers": "0.43.0"}
    broken = side("broken").recording(BF16)
    assert failure_of(broken.record) == failure(Outcome.BROKEN, "it does not work", BF16.id)
    assert broken.record.unsupported is None


def test_an_import_error_is_said_and_not_tried_twice(side: Make) -> None:
    failing = side("import", name="base")
    words = "base ended with code 1: ImportError: cannot import name 'FLAX_WEIGHTS_NAME'"
    with pytest.raises(ScenarioError, match=words) as first:
        failing.opened()
    with pytest.raises(ScenarioError) as second:
        failing.ask("record", FP32, Recording)
    assert second.value is first.value
    failure = failure_of(failing.recording(FP32).record)
    assert failure is not None
    assert words in failure.text


def test_what_a_side_refuses_is_its_own_sentence(side: Make) -> None:
    with pytest.raises(ScenarioError, match=r"^no such accelerator$"):
        side("refuse").opened()


def test_closing_what_is_timed_starts_no_process(side: Make) -> None:
    sound = side("sound")
    sound.timed(BF16).close()
    assert not sound.is_running


def test_sets_have_one_order_in_every_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever seed the comparison itself runs with."""
    orders = set()
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        order = "print(list({'vae', 'unet', 'text_encoder', 'tokenizer', 'scheduler'}))"
        process = LineProcess([sys.executable, "-c", order], tmp_path / "log.txt")
        orders.add(process.exchange("", limit_s=60.0))
        process.end()
    assert len(orders) == 1
