"""An interpreter whose packages are patched: `python -m tests.support.patched_python NAME -m ...`.

The denoiser of `copy` copies its input, that of `twice` runs twice, and that of `slower` takes 5 %
more of the processor's time; `faults` has those of `tests.support.faults`.
"""

from __future__ import annotations

import runpy
import sys
import time
from typing import Any


def copying(forward: Any) -> Any:
    """Copy the input first."""

    def copy_and_run(self: Any, sample: Any, *arguments: Any, **options: Any) -> Any:
        return forward(self, sample.clone(), *arguments, **options)

    return copy_and_run


def _running_twice(forward: Any) -> Any:
    def run_twice(self: Any, *arguments: Any, **options: Any) -> Any:
        forward(self, *arguments, **options)
        return forward(self, *arguments, **options)

    return run_twice


def _slower(forward: Any) -> Any:
    def run_slower(self: Any, *arguments: Any, **options: Any) -> Any:
        start_s = time.thread_time()
        output = forward(self, *arguments, **options)
        end_s = time.thread_time()
        while time.thread_time() < end_s + 0.05 * (end_s - start_s):
            pass
        return output

    return run_slower


def command(name: str) -> list[str]:
    """Of such an interpreter."""
    return [sys.executable, "-m", "tests.support.patched_python", name]


if __name__ == "__main__":
    name, _, module, *sys.argv[1:] = sys.argv[1:]
    if name == "faults":
        from tests.support.faults import inject

        inject()
    else:
        from diffusers import UNet2DConditionModel

        patch = {"copy": copying, "twice": _running_twice, "slower": _slower}[name]
        UNet2DConditionModel.forward = patch(UNet2DConditionModel.forward)
    runpy.run_module(module, run_name="__main__", alter_sys=True)
