"""Measurements that see nothing, in a real run: `pytest perf_tests -p tests.support.blind`.

The environment variable `PERF_BLIND` says which of them, by the names of `BLIND`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from fixtures.records.counts import Counts

PATCH: Final = pytest.MonkeyPatch()


def _counts() -> None:
    nothing = property(lambda ledger: Counter(), lambda ledger, tally: None)
    PATCH.setattr("fixtures.devices.ledger.StorageLedger.tally", nothing, raising=False)


def _dtypes() -> None:
    PATCH.setattr("fixtures.devices.ledger._COMPUTE", frozenset())


def _peaks() -> None:
    """Storages are added up, and no peak is ever noted."""

    def forget(ledger: Any) -> None:
        ledger.component_peak_bytes = {}

    PATCH.setattr("fixtures.devices.ledger.StorageLedger._note_peak", forget)


def _resident_tensors() -> None:
    PATCH.setattr("fixtures.devices.cpu.resident_tensors", lambda pipeline: [])


def _host_calls() -> None:
    PATCH.setattr(
        "fixtures.devices.host_calls.HostCallCounter.counts",
        lambda counter, telling=None: Counts(),
    )


BLIND: Final[dict[str, Callable[[], None]]] = {
    "counts": _counts,
    "dtypes": _dtypes,
    "peaks": _peaks,
    "resident tensors": _resident_tensors,
    "host calls": _host_calls,
}


def pytest_configure(config: pytest.Config) -> None:
    """Blind what the environment names."""
    BLIND[os.environ["PERF_BLIND"]]()
