"""A later call of the same pipeline may not do more than the one before."""

from __future__ import annotations

from fixtures.measuring.steps import grown
from tests.support.counting import host_calls


def test_a_call_that_grows_is_a_fault() -> None:
    before = host_calls(torch_a_step=0)
    assert grown(before, host_calls(torch_a_step=5000)) == ""  # where torch was not counted before
    assert grown(before, host_calls(590)) == grown(before, host_calls(612)) == ""
    sentence = grown(before, host_calls(613))
    more = "host calls +13 a step"
    assert sentence == f"a step of the next call of the same pipeline does more: {more}"
