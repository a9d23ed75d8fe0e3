"""Commands and files as the pages show them, found by a page and words that only they have."""

from __future__ import annotations

import re
import ssl
import urllib.error
import urllib.request

import pytest

from fixtures.settings import REPOSITORY

FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")


def block(page: str, words: str) -> str:
    """The block of code of a page that has these words."""
    return _only(page, words, FENCED.findall(_text(page)))


def command(page: str, words: str) -> str:
    """The line of a block, or the code within a sentence, that has these words."""
    text = _text(page)
    lines = [line for code in FENCED.findall(text) for line in code.splitlines()]
    return _only(page, words, [*lines, *INLINE.findall(FENCED.sub("", text))])


def skip_without(index: str) -> None:
    """Skip, with the reason, where this package index does not answer; a refusal is an answer."""
    try:
        urllib.request.urlopen(index, timeout=30).close()  # noqa: S310 - what pip is told to use
    except urllib.error.HTTPError:
        return
    except OSError as error:
        if not isinstance(getattr(error, "reason", error), ssl.SSLError):
            pytest.skip(f"not judged, {index} does not answer: {error}")


def _text(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


def _only(page: str, words: str, candidates: list[str]) -> str:
    matches = sorted({text for text in candidates if words in text})
    assert len(matches) == 1, f"{page} shows {len(matches)} times: {words}"
    return matches[0]
