"""Something timed that runs nothing: its rounds last as long as the test says."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.worker.rounds import Round

GONE = 2**30
"""The number of no process."""


@dataclass
class FakeTimed:
    """`TimedElsewhere`: the n-th round lasts `seconds(n)` on the judged clock.

    That is `share` of its wall time; the rounds of the numbers in `hot` are disturbed, for the
    reason `why`; and the method that `fails` names raises. It counts what is asked of it.
    """

    seconds: Callable[[int], float] = lambda number: 1.0
    share: float = 1.0
    hot: Collection[int] = ()
    why: str = "it was hot"
    fails: str = ""
    pid: int | None = GONE
    placed: int = 0
    rounds: int = 0
    closed: int = 0

    def place(self) -> None:
        """Count it."""
        self.placed += 1
        self._fail("place")

    def round(self) -> Round:
        """As long as the test says."""
        self.rounds += 1
        self._fail("round")
        judged_s = self.seconds(self.rounds)
        why = self.why if self.rounds in self.hot else None
        return Round(judged_s, judged_s / self.share, why, ended_s=0.0)

    def start_calls(self) -> None:
        """Nothing runs."""
        self._fail("start_calls")

    def stop_calls(self) -> list[Round]:
        """One call that was there all the while."""
        self._fail("stop_calls")
        return [Round(self.seconds(1), 1000.0, ended_s=0.0)]

    def evidence(self) -> str:
        """A quiet machine."""
        return "load 0.5; seen by it"

    def close(self) -> None:
        """Count it."""
        self.closed += 1
        self._fail("close")

    def _fail(self, what: str) -> None:
        if what == self.fails:
            raise ScenarioError("s", Outcome.BROKEN, f"{what} failed")
