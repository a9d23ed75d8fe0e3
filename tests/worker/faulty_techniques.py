"""A catalogue of techniques that harm the process they run in, each in one way."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fixtures.catalogue.techniques.registry import technique
from fixtures.catalogue.techniques.technique import Application


def _harmful(harm: Callable[[], object]) -> Application:
    def apply(workload: Any, device: Any) -> Iterator[Any]:
        harm()
        yield workload.load(device.base_dtype).to(device.torch_device)

    apply.__name__, apply.__doc__ = harm.__name__, f"Do harm: {harm.__name__}."
    return technique(
        family="harm", document="notes", activation_check=lambda context: None, min_ssim=0.99
    )(apply)


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def leave() -> None:
    os.write(2, b"first\nthe last line\n")
    os._exit(3)


def exit_softly() -> None:
    sys.exit("enough")


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
    time.sleep(600)


def exhaust_memory() -> None:
    import torch

    resource.setrlimit(resource.RLIMIT_AS, (2**28, 2**28))
    torch.empty(2**30)


def compute_on_threads() -> None:
    import torch

    ones, start = torch.ones(40_000), threading.Barrier(16)

    def compute(_: int) -> bool:
        start.wait()
        return bool((ones + ones == 2).all())

    sys.setswitchinterval(1e-6)
    with ThreadPoolExecutor(16) as threads:
        raise RuntimeError(f"{sum(threads.map(compute, range(16)))} of 16 computed")


def leave_everything() -> None:
    """Patches, hooks, modes, kernels, environment, handlers, threads, processes and files."""
    import tempfile

    import torch
    from diffusers import UNet2DConditionModel
    from torch.utils._python_dispatch import TorchDispatchMode

    torch.nn.functional.silu = torch.nn.functional.relu
    UNet2DConditionModel.forward = lambda *args, **options: 1 / 0
    torch.nn.modules.module.register_module_forward_pre_hook(lambda *args: exit())
    torch.library.Library("aten", "IMPL").impl("add.Tensor", lambda a, b: a, "CPU")
    TorchDispatchMode().__enter__()
    os.environ.update(HOME="/nowhere", OMP_NUM_THREADS="none")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=time.sleep, args=(600,)).start()
    tempfile.mkdtemp(prefix="left-")
    for session in (False, True):
        sleeper = ["sh", "-c", "trap '' TERM INT HUP; echo; while :; do sleep 60; done"]
        pipe = subprocess.PIPE
        child = subprocess.Popen(sleeper, stdout=pipe, start_new_session=session)
        assert child.stdout
        child.stdout.readline()
    raise RuntimeError("after all that")


for _harm in (
    *(crash, leave, exit_softly, be_killed, hang, exhaust_memory),
    *(compute_on_threads, leave_everything),
):
    _harmful(_harm)
