"""The handle of a side outlives its process: a crash, a hang, an import that fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fixtures.commands.compare.line_process import LineProcess
from fixtures.commands.compare.messages import Recording
from fixtures.commands.compare.remote_side import RemoteSide
from fixtures.measuring.rounds import Plan
from fixtures.records.outcome import Outcome, ScenarioError, Side
from fixtures.scenarios import find_scenario
from fixtures.settings import Settings
from tests.support.fake_side import COMMAND

FP32, BF16 = (find_scenario("storybook", name) for name in ("fp32", "bf16"))
Make = Callable[..., RemoteSide]


@pytest.fixture
def side(tmp_path: Path) -> Iterator[Make]:
    """Makes sides that are ended afterwards."""
    made: list[RemoteSide] = []

    def make(kind: str, name: Side = "head", limit_s: float = 60.0) -> RemoteSide:
        made.append(RemoteSide(name, [*COMMAND, kind], Settings(), tmp_path, limit_s))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_side_says_what_it_is_and_responds(side: Make) -> None:
    sound = side("sound")
    assert sound.opened().run.device_key == "fake"
    assert sound.recording(BF16).plan == Plan(groups=2, pairs=2)
    timed = sound.timed(BF16)
    timed.place()
    assert timed.pid not in (None, os.getpid())
    assert timed.round().judged_s == 0.1
    assert timed.evidence().load == 0.5
    timed.close()


def test_a_crash_is_a_failure_with_its_last_words_and_the_next_request_is_answered(
    side: Make,
) -> None:
    crashing = side("crash")
    with pytest.raises(ScenarioError) as caught:
        crashing.ask("record", BF16, Recording)
    error = caught.value
    assert error.reason == "head ended with code 3: the last thing it said"
    assert (error.scenario, error.outcome, error.side) == (BF16.id, Outcome.BROKEN, "head")
    assert crashing.recording(FP32).plan


def test_a_hang_is_ended(side: Make) -> None:
    hanging = side("hang", limit_s=8.0)
    hanging.opened()
    with pytest.raises(ScenarioError, match="head gave no response for 8 s and was ended"):
        hanging.ask("record", BF16, Recording)
    assert hanging.recording(FP32).plan


def test_a_response_to_another_request_ends_the_process(side: Make) -> None:
    garbling = side("garble")
    with pytest.raises(ScenarioError, match="head responded with Round"):
        garbling.ask("record", BF16, Recording)
    assert not garbling.is_running
    assert garbling.recording(FP32).plan


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
    "half", [b'{"content": {"outcome": "br', '{"content": "é'.encode()[:-1], b"{", b"\xff"]
)
@pytest.mark.parametrize(
    ("end", "how"), [("os._exit(9)", "code 9"), ("os.kill(os.getpid(), 9)", "SIGKILL")]
)
def test_half_a_line_of_a_dying_side_is_its_end(
    tmp_path: Path, half: bytes, end: str, how: str
) -> None:
    program = (
        f"import os, sys; input(); print('why', file=sys.stderr); os.write(1, {half!r}); {end}"
    )
    head = RemoteSide("head", [sys.executable, "-u", "-c", program], Settings(), tmp_path, 60.0)
    with pytest.raises(ScenarioError, match=f"^head ended with {how}: why$"):
        head.opened()


def test_what_is_not_text_is_no_response(tmp_path: Path) -> None:
    program = "import os; input(); os.write(1, b'\\xff\\xfe\\n')"
    head = RemoteSide("head", [sys.executable, "-c", program], Settings(), tmp_path, 60.0)
    with pytest.raises(ScenarioError, match="the response of head is not JSON"):
        head.opened()


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
    assert head.recording(FP32).failure is not None


def test_a_failure_is_a_recording_with_its_reason(side: Make) -> None:
    absent = side("absent").recording(BF16)
    assert absent.failure is not None
    assert absent.failure.outcome is Outcome.UNSUPPORTED
    assert absent.record.unsupported == "needs diffusers 0.33 or later, this is 0.30.0"
    assert absent.run.software == {"diffusers": "0.43.0"}
    broken = side("broken").recording(BF16)
    assert broken.failure is not None
    assert broken.failure.reason == "it does not work"
    assert broken.record.unsupported is None


def test_an_import_error_is_said_and_not_tried_twice(side: Make) -> None:
    failing = side("import", name="base")
    words = "base ended with code 1: ImportError: cannot import name 'FLAX_WEIGHTS_NAME'"
    with pytest.raises(ScenarioError, match=words) as first:
        failing.opened()
    with pytest.raises(ScenarioError) as second:
        failing.ask("record", FP32, Recording)
    assert second.value is first.value
    failure = failing.recording(FP32).failure
    assert failure is not None
    assert words in failure.reason


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
    for seed in ("1", "2", "random"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        program = "print(list({'vae', 'unet', 'text_encoder', 'tokenizer', 'scheduler'}))"
        process = LineProcess([sys.executable, "-c", program], tmp_path / "log.txt")
        orders.add(process.exchange("", limit_s=60.0))
        process.end()
    assert len(orders) == 1
