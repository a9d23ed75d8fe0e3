"""A bench that measures nothing, for runs of the suite that cost nothing: `-p tests.fake_bench`.

Its device has every figure from the scenario's name. The environment spoils single scenarios:
`FAKE_MORE` does more work than before, `FAKE_IDLE` is not in effect, `FAKE_LEAK` leaves memory
allocated, and `FAKE_CRASH` ends the process. With `FAKE_ACCELERATORS` there are so many of them,
and each observation adds a line with its worker and its accelerator to the file `FAKE_LOG`.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fixtures import machine
from fixtures.machine import VISIBLE

KEY = "fake"
if "FAKE_ACCELERATORS" in os.environ:
    # At once: accelerators are counted before plugins are configured.
    machine._cuda_devices = lambda: int(os.environ["FAKE_ACCELERATORS"])
    machine.accelerator_kind = lambda: "cuda"  # type: ignore[assignment]


class FakeDevice:
    """A device that has neither an accelerator nor xFormers."""

    name = "simulated"
    key = KEY
    caveat = ""
    memory_source = "replay"
    hardware: Mapping[str, Any] = {"accelerator": "Testron 9000", "memory_gib": 80}

    def missing(self, need: str) -> str | None:
        reasons = {"accelerator": "needs an accelerator", "xformers": "xFormers is not installed"}
        return reasons.get(need)

    def release(self) -> None:
        """Nothing is held."""


def _observe(asked: Any, device: FakeDevice) -> Any:
    import numpy as np

    from fixtures.measurement import Observation

    if "FAKE_LOG" in os.environ:
        with Path(os.environ["FAKE_LOG"]).open("a") as log:
            worker, own = (os.environ.get(n) for n in ("PYTEST_XDIST_WORKER", VISIBLE))
            log.write(f"{worker} {own} {asked.id}\n")
    if asked.id == os.environ.get("FAKE_CRASH"):
        os._exit(1)
    figure = 2**20 + zlib.crc32(asked.technique.id.encode()) % 2**20
    return Observation(
        scenario=asked.id,
        peak_bytes={"whole": figure, "denoiser": figure // 2},
        # One scenario is not counted, which leaves a note.
        counters={}
        if asked.technique.id == "traced_unet"
        else {"aten::mm": figure + (asked.id == os.environ.get("FAKE_MORE")), "aten::add": 3},
        call_s=1.0,
        pictures=np.random.default_rng(0).random((1, 16, 16, 3)),
        inactive="it does nothing" if asked.id == os.environ.get("FAKE_IDLE") else None,
        left_behind=(),
        leak="a call left 2.00 MiB allocated" if asked.id == os.environ.get("FAKE_LEAK") else None,
    )


def pytest_configure(config: pytest.Config) -> None:
    from fixtures import plugin
    from tests.records import timing

    for module in (plugin, sys.modules["conftest"]):
        module.open_device = lambda *_: FakeDevice()
    plugin.observe = _observe
    plugin.look_in_fresh_process = lambda *_: timing()
