"""Whatever a text from outside says: no markup, no link, no command, no control character."""

from __future__ import annotations

import inspect
import json
import re
import unicodedata
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from fixtures.commands.compare.__main__ import render as render_comparison
from fixtures.commands.compare.comparing import Compared
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import RunRecord
from fixtures.report.comparison import Comparison, Finding, Headline
from fixtures.report.plain import escaped, escaped_line, no_commands, plain_line
from fixtures.report.summary import markdown
from fixtures.report.terminal import render
from fixtures.settings import Settings
from fixtures.suite.judging import judge
from tests.support.runs import run_record, scenario_record, verdict

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
NO_WIDTH = "\u200b"
DOLLAR = re.compile(r"<span>&#36;</span>")
LIVE = re.compile(
    r"@[\w-]|#\d|://|\bwww\.|\bGH-\d|\b[0-9a-f]{7,40}\b|\$|[\w.+-]+@[\w-]+\.\w", re.IGNORECASE
)
"""What GitHub links or typesets by how it is spelt."""

PIECES = [
    *("@name", "@org/team", "a@b.org", "#1", "owner/name#1", "owner/name@0123abc", "GH-12"),
    *("https://example.org/a?b=c", "http://x", "www.example.org", "ftp://x", "mailto:a@b.org"),
    *("$x$", "$$x$$", "$`x`$", "\\$x$", "`", "```", "~~~", "*", "**", "__", "~~", "\\", "|", "||"),
    *("# ", "###### ", "- ", "+ ", "* ", "1. ", "12) ", "> ", "---", "===", "    ", "\t", "\n\n"),
    *("<b>", "</details>", "<!--", "-->", "<script>", "<https://x>", "&amp;", "&lt;b&gt;", "&#35;"),
    *("[a](b)", "![a](b)", "[a]: b", "[^1]", "[x]", ":tada:", "0123456789abcdef", "\x1b[31m"),
    *("::error::", "::stop-commands::x", "##[error]", "\r", "\x85", "\u2028", "\x9b2J", "\ud800"),
    *("\u202e", "\0", "\x07", "word", "é", "aten::mm"),
]
TEXTS = st.one_of(
    st.lists(st.sampled_from([*PIECES, " "]), max_size=12).map("".join),
    st.text(st.characters(), max_size=60),  # surrogates among them
)


def tokens_of(text: str) -> list[Token]:
    """Every token, those inside of others as well; the spans round dollars are none."""
    tokens = MARKDOWN.parse(DOLLAR.sub("DOLLAR", text))
    return tokens + [child for token in tokens for child in token.children or ()]


def shown(text: str) -> str:
    """What a reader sees of one paragraph."""
    return "".join(
        token.content for token in tokens_of(text) if token.type in ("text", "text_special")
    )


@given(TEXTS)
@example("a" * 7)
@example("https://example.org")
@example("1) x")
@example("\\\\`x`")
def test_a_text_is_one_paragraph_of_words_and_looks_as_it_was(words: str) -> None:
    text = escaped_line(words)
    kinds = {token.type for token in tokens_of(text)}
    assert kinds <= {"paragraph_open", "paragraph_close", "inline", "text"}
    assert shown(text).replace(NO_WIDTH, "") == plain_line(words).replace("$", "DOLLAR")
    assert not LIVE.search(shown(text))
    assert "$" not in text
    assert "\n" not in text
    text.encode()


@given(TEXTS)
def test_a_text_stays_in_its_cell(words: str) -> None:
    table = f"| a | b |\n|---|---|\n| {escaped(words)} | end |"
    tokens = tokens_of(table)
    assert [token.type for token in tokens].count("td_open") == 2
    cells = [token.content for token in tokens if token.type == "inline"]
    assert cells[-1] == "end"
    assert "html_inline" not in {token.type for token in tokens}


def outside(words: str) -> RunRecord:
    """A run in which everything that may come from outside says these words."""
    regression = verdict("storybook-fp16", Outcome.REGRESSION)
    undecided = verdict("storybook-fp16", Outcome.INCONCLUSIVE, "SSIM")
    unknown = verdict("storybook-fp16", Outcome.NOT_JUDGED, "peak memory", detail=words)
    failed = replace(regression, text=words, detail=words)
    return run_record(
        scenario_record(
            words,
            wall_ms=120.0,
            verdicts=[failed, replace(undecided, text=words), unknown],
            weights=words,
        ),
        scenario_record(f"other{words}", unsupported=words or "none"),
        weights=words,
        notes=[words],
    )


FOLDED = ("Every verdict", "All figures")
"""Behind a comparison's findings."""


@given(TEXTS)
def test_no_word_of_a_run_is_live_in_its_summary(words: str) -> None:
    figure = Verdict(words, words, Outcome.REGRESSION, words, 2.0, 1.0, detail=words)
    program = f"name = {json.dumps(words)}\n"
    finding = Finding(Outcome.REGRESSION, words, words, (words,), checks=words, program=program)
    headline = Headline("regression", [words])
    sides = (words, words), run_record()
    comparison = Comparison(*sides, [words], [figure], 0, [finding], headline)
    text = markdown(outside(words), strict=False, comparison=comparison)
    tokens = tokens_of(text)
    kinds = {token.type for token in tokens}
    assert not kinds & {"link_open", "image", "code_inline", "code_block", "html_inline"}
    assert not kinds & {"em_open", "s_open", "blockquote_open", "hr"}
    assert [token.type for token in tokens].count("ordered_list_open") == 1  # of findings
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h2"]
    folded = [token.content for token in tokens if token.type == "html_block"]
    assert [token.content for token in tokens if token.type == "fence"] == [program]
    of_program, *others = folded
    assert of_program.startswith("<details><summary>Measure it on a card: ")
    assert of_program.count("<") == 3
    end = "</details>\n"
    first, last = (f"<details><summary>{words}</summary>\n" for words in FOLDED)
    assert [others.pop(3)[-7:], *others] == ["</pre>\n", end, first, end + last, end]
    seen = " ".join(token.content for token in tokens if token.type == "text")
    assert not LIVE.search(seen)
    assert len(text.splitlines()) == len(text.split("\n")) - 1
    text.encode()


@given(TEXTS, st.booleans(), st.integers(20, 200))
def test_no_control_character_and_no_command_reaches_the_terminal(
    words: str, color: bool, width: int
) -> None:
    lines = render(outside(words), width=width, color=False).split("\n")
    for line in lines:
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
        assert not [char for char in line if unicodedata.category(char) in ("Cc", "Cs", "Cf")]
    colored = render(outside(words), width=width, color=color)
    assert not re.search(r"\x1b(?!\[[\d;]*m)", colored)


@pytest.mark.parametrize("command", ["::error::x", "  ::add-mask::x", "##[error]x", "a ##[x]"])
def test_a_command_is_none_and_the_rest_is_left_alone(command: str) -> None:
    text = no_commands(f"before\n{command}\naten::mm 4 -> 8 ## x\n")
    before, middle, after, end = text.split("\n")
    assert middle != command
    assert middle.replace(" ", "") == command.replace(" ", "")
    assert not middle.lstrip().startswith("::")
    assert (before, after, end) == ("before", "aten::mm 4 -> 8 ## x", "")


@pytest.mark.parametrize("outcome", [Outcome.REGRESSION, Outcome.INCONCLUSIVE, Outcome.NOT_JUDGED])
def test_what_a_test_says_of_a_verdict_is_no_command_either(outcome: Outcome) -> None:
    """pytest prints a failure without a trace as it is."""
    words = "slower\n::error::x\x1b[31m ##[error]"
    kept = SimpleNamespace(record=lambda scenario: SimpleNamespace(keep=lambda *verdicts: None))
    perf = SimpleNamespace(measurements=kept, settings=Settings(), items=[])
    take = inspect.unwrap(judge)(None, None, perf, lambda name, value: None)
    with pytest.raises((pytest.fail.Exception, pytest.skip.Exception)) as said:
        take(replace(verdict("storybook-fp16", outcome), text=words))
    assert "\x1b" not in str(said.value)
    assert "\n" not in str(said.value)
    assert "##[" not in str(said.value)
    assert "slower ::error::x\\x1b[31m" in str(said.value)


def test_a_comparison_s_words_are_no_command() -> None:
    broken = replace(verdict("storybook-fp16", Outcome.BROKEN), text="broken\n::error::x\x1b[31m")
    compared = Compared(run_record(), run_record(), [broken])
    text = render_comparison(compared, ("a", "b"), color=False)
    assert "\x1b" not in text
    assert "broken ::error::x\\x1b[31m" in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]
