"""The handle of a side outlives its process: a crash, a hang, an import that fails."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fixtures.compare.process import Side
from fixtures.measurement import ScenarioError
from fixtures.scenarios import scenarios
from fixtures.settings import Settings
from fixtures.verdicts import Outcome

FAKE = Path(__file__).with_name("fake_side.py")
FOUND = {one.technique.id: one for one in scenarios(["storybook"])}
Make = Callable[..., Side]


@pytest.fixture
def side(tmp_path: Path) -> Iterator[Make]:
    """Makes sides that are ended afterwards."""
    made: list[Side] = []

    def make(kind: str, name: str = "head", limit_s: float = 60.0) -> Side:
        command = [sys.executable, str(FAKE), kind]
        made.append(Side(name, command, Settings(), tmp_path, limit_s))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_side_says_what_it_is_and_answers(side: Make) -> None:
    sound = side("sound")
    assert sound.opened().key == "fake"
    assert sound.ask("record", FOUND["bf16"])["plan"] == {"groups": 2, "pairs": 2}
    assert sound.ask("round")["busy_s"] == 0.1


def test_a_crash_is_a_failure_with_its_last_words_and_the_next_question_is_answered(
    side: Make,
) -> None:
    crashing = side("crash")
    with pytest.raises(ScenarioError, match="head ended with code 3: the last thing it said") as e:
        crashing.ask("record", FOUND["bf16"])
    assert e.value.outcome is Outcome.BROKEN
    assert crashing.ask("record", FOUND["fp32"])["plan"]


def test_a_hang_is_ended(side: Make) -> None:
    hanging = side("hang", limit_s=8.0)
    hanging.opened()
    with pytest.raises(ScenarioError, match="gave no answer for 8 s and was ended"):
        hanging.ask("record", FOUND["bf16"])
    assert hanging.ask("record", FOUND["fp32"])["plan"]


def test_an_import_error_is_said_and_not_tried_twice(side: Make) -> None:
    failing = side("import", name="base")
    words = "base ended with code 1: ImportError: cannot import name 'FLAX_WEIGHTS_NAME'"
    with pytest.raises(ScenarioError, match=words) as first:
        failing.opened()
    with pytest.raises(ScenarioError) as second:
        failing.ask("record", FOUND["fp32"])
    assert second.value is first.value


def test_what_a_side_refuses_is_its_own_sentence(side: Make) -> None:
    with pytest.raises(ScenarioError, match=r"^no such accelerator$"):
        side("refuse").opened()
