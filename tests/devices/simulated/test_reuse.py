"""Who may still use a stretch of freed memory, held against a model that knows every byte."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.devices.simulated.reuse import FreedMemory, Use

BYTES = 12
STRETCH = st.tuples(st.integers(0, BYTES - 1), st.integers(1, BYTES)).map(
    lambda pair: (pair[0], min(sum(pair), BYTES))
)


@settings(max_examples=300, deadline=None)
@given(st.lists(STRETCH, max_size=20))
def test_every_byte_keeps_its_use_until_it_is_asked_for(stretches: list[tuple[int, int]]) -> None:
    """Each stretch is asked for, used once, and freed."""
    memory, model = FreedMemory(), [frozenset[Use]()] * BYTES
    for position, (start, end) in enumerate(stretches):
        assert set(memory.take(start, end)) == frozenset().union(*model[start:end])
        assert memory.take(start, end) == []
        use = Use(0, position, "a kernel")
        memory.put(start, end, [use])
        model[start:end] = [frozenset({use})] * (end - start)
    assert set(memory.take(0, BYTES)) == frozenset().union(*model)
