"""A misspelt -k is told which names come close."""

from __future__ import annotations

import pytest

from fixtures.scenarios import scenarios
from fixtures.suite.selecting import suggestions

FOUND = scenarios(["storybook"])


@pytest.mark.parametrize(
    ("keyword", "meant"),
    [
        ("[storybook-sdap]", "storybook-sdpa"),
        ("chanels_last", "channels_last"),
        ("not [storybook-bf61] and test_latency", "storybook-bf16"),
    ],
)
def test_the_closest_names_are_given(keyword: str, meant: str) -> None:
    sentence = suggestions(keyword, FOUND)
    assert sentence.startswith(f"-k {keyword!r} selects no scenario; did you mean ")
    assert meant in sentence
    assert "--collect-only" in sentence


def test_where_nothing_comes_close_only_the_list_is_named() -> None:
    assert "did you mean" not in suggestions("zzz", FOUND)
    assert "--collect-only" in suggestions("zzz", FOUND)
