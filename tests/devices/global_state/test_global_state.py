"""All that a scenario may leave behind in its process: named once, and put back."""

from __future__ import annotations

import functools
import gc
import importlib
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
import torch
from diffusers.models import attention_dispatch
from diffusers.models.attention_processor import Attention
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fixtures.devices.global_state import GlobalState
from fixtures.devices.global_state.torch_settings import TORCH_SETTINGS, read_torch_settings


def other(*args: Any, **kwargs: Any) -> None:
    """Stand in for a function of a library."""


def hook(*args: Any) -> None:
    """Do nothing when a module is called."""


class Operations(TorchDispatchMode):
    """A mode of operations that does nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def enter(mode: Any) -> None:
    """Enter what nobody leaves."""
    ENTERED.append(mode())
    ENTERED[-1].__enter__()


ENTERED: list[Any] = []
"""Kept: some are left when nobody holds them."""


class CustomPass:
    """An option of a configuration, without a notion of equality."""

    def uuid(self) -> None:
        """Name no version."""


CHANGES: dict[str, Callable[[], object]] = {
    "default device: None -> meta": lambda: torch.set_default_device("meta"),
    "default_dtype: torch.float32 -> torch.float64": lambda: torch.set_default_dtype(torch.float64),
    "num_threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "cudnn_benchmark": lambda: setattr(torch.backends.cudnn, "benchmark", True),
    "deterministic_algorithms": lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    "mkldnn_enabled": lambda: setattr(torch.backends.mkldnn, "enabled", False),
    "flash_sdp_enabled": lambda: torch.backends.cuda.enable_flash_sdp(False),
    "fp32 precision of cuda's conv": lambda: TORCH_SETTINGS.write(
        "fp32 precision of cuda's conv", "ieee"
    ),
    "autocast on the CPU": lambda: torch.set_autocast_enabled("cpu", True),
    "grad_enabled": lambda: torch.set_grad_enabled(False),
    "flush denormal": lambda: torch.set_flush_denormal(True),
    "modes of torch functions": lambda: enter(TorchFunctionMode),
    "modes of torch operations": lambda: enter(Operations),
    "hooks of every torch.nn.Module (forward hooks)": lambda: (
        torch.nn.modules.module.register_module_forward_hook(hook)
    ),
    "patched diffusers.models.attention_processor.Attention.forward": lambda: setattr(
        Attention, "forward", other
    ),
    "patched diffusers.models.attention_processor.Attention.added": lambda: setattr(
        Attention, "added", property(other)
    ),
    "patched torch.nn.functional.scaled_dot_product_attention": lambda: setattr(
        torch.nn.functional, "scaled_dot_product_attention", other
    ),
    "patched torch.nn.modules.linear.Linear.forward": lambda: setattr(
        torch.nn.Linear, "forward", functools.partialmethod(other)
    ),
    "patched diffusers.models.attention_dispatch._AttentionBackendRegistry._active_backend": (
        lambda: attention_dispatch._AttentionBackendRegistry.set_active_backend(
            attention_dispatch.AttentionBackendName("_native_math")
        )
    ),
    "torch._dynamo.config.recompile_limit": lambda: setattr(
        torch._dynamo.config, "recompile_limit", 3
    ),
    "patched torch._dynamo.eval_frame._stance": lambda: torch.compiler.set_stance("force_eager"),
    "garbage collector": gc.disable,
    "garbage thresholds": lambda: gc.set_threshold(7),
    "recursion limit": lambda: sys.setrecursionlimit(sys.getrecursionlimit() + 1),
    "NumPy's error handling": lambda: np.seterr(all="raise"),
    "working directory": lambda: os.chdir("/"),
    "search path of modules": lambda: sys.path.append("elsewhere"),
    "environment variable TOKENIZERS_PARALLELISM": lambda: os.environ.update(
        TOKENIZERS_PARALLELISM="perhaps"
    ),
    "environment variable PERF_ADDED": lambda: os.environ.update(PERF_ADDED="secret"),
    "handler of SIGUSR1": lambda: signal.signal(signal.SIGUSR1, other),
    "warnings filters": lambda: warnings.simplefilter("ignore", ImportWarning),
    "logger diffusers": lambda: logging.getLogger("diffusers").setLevel(1),
    "logger torch": lambda: setattr(logging.getLogger("torch"), "disabled", True),
    "inference mode: False -> True": lambda: enter(torch.inference_mode),
    "deterministic algorithms warn only": lambda: torch.use_deterministic_algorithms(
        torch.are_deterministic_algorithms_enabled(), warn_only=True
    ),
    "hook of exceptions": lambda: setattr(sys, "excepthook", other),
    "patched huggingface_hub.snapshot_download": lambda: setattr(
        huggingface_hub, "snapshot_download", other
    ),
    "disabled logging": lambda: logging.disable(logging.ERROR),
    "trace function": lambda: sys.settrace(other),
    "standard error": lambda: setattr(sys, "stderr", sys.stdout),
}
"""By what is said of it, a change to the process."""


@pytest.fixture(autouse=True)
def imported() -> Iterator[None]:
    """Import what torch imports late; what is not put back shall spoil no other test."""

    trace, stderr = sys.gettrace(), sys.stderr
    yield
    sys.settrace(trace)
    assert sys.stderr is stderr


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_named_once_and_put_back(name: str) -> None:
    state = GlobalState()
    CHANGES[name]()
    left = [change.what for change in state.put_back()]
    # To leave some things changes others, too, such as the mode that holds the default device.
    assert [what for what in left if what.startswith(name)], left
    assert not any("for good" in what or "secret" in what for what in left)
    assert state.put_back() == ()


def test_nothing_is_named_where_nothing_was_changed_but_what_libraries_do_when_imported() -> None:
    name, state = "added_by_import", GlobalState()
    module = type(sys)("diffusers.imported_meanwhile")
    exec("def added(module): ...", vars(module))  # noqa: S102
    sys.modules[module.__name__] = module
    try:
        setattr(torch.nn.Module, name, module.added)
        torch.rand(3), np.random.rand(3)
        assert state.put_back() == ()
        assert getattr(torch.nn.Module, name) is module.added
    finally:
        delattr(torch.nn.Module, name)
        del sys.modules[module.__name__]


def test_what_breaks_the_reading_of_some_state_leaves_the_rest_to_be_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state = GlobalState()
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setattr(signal, "getsignal", None)
    torch.set_default_dtype(torch.float64)
    execute = SourceFileLoader.exec_module
    left = [change.what for change in state.put_back()]
    assert left[0].startswith("working directory: ")
    assert left[0].endswith(" -> a folder that was removed")
    assert "default_dtype: torch.float32 -> torch.float64" in left
    assert any(what.startswith("state that cannot be read any more") for what in left)
    assert SourceFileLoader.exec_module is not execute
    assert Path.cwd() == tmp_path


def test_what_dynamo_wraps_when_it_first_compiles_stays() -> None:
    wrapped = torch.compiler.disable(torch.nn.functional.gelu)
    gelu = torch.nn.functional.gelu
    state = GlobalState()
    torch.nn.functional.gelu = wrapped
    try:
        assert state.put_back() == ()
        assert torch.nn.functional.gelu is wrapped
    finally:
        torch.nn.functional.gelu = gelu


def test_a_value_that_is_equal_to_no_copy_of_itself_is_not_changed() -> None:
    config: Any = importlib.import_module("torch._inductor.config")
    config.post_grad_custom_post_pass = pass_ = CustomPass()
    try:
        assert GlobalState().put_back() == ()
        state = GlobalState()
        config.post_grad_custom_post_pass = CustomPass()
        assert len(state.put_back()) == 1
        assert config.post_grad_custom_post_pass is pass_
    finally:
        config.post_grad_custom_post_pass = None


def test_a_patch_of_what_was_imported_meanwhile_is_undone_too() -> None:
    for name in [name for name in sys.modules if "latent_upsample" in name]:
        del sys.modules[name]
    state = GlobalState()
    module = importlib.import_module("diffusers.pipelines.ltx2.latent_upsampler")
    forward = module.ResBlock.forward
    module.ResBlock.forward = other
    patched = state.put_back()[-1].what
    assert patched == "patched diffusers.pipelines.ltx2.latent_upsampler.ResBlock.forward"
    assert module.ResBlock.forward is forward


def test_what_others_draw_by_chance_does_not_depend_on_it() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    state = GlobalState()
    torch.rand(7)
    state.put_back()
    assert torch.equal(torch.rand(3), expected)


def test_every_setting_of_torch_can_be_written_as_it_is_read() -> None:
    before = read_torch_settings()
    assert len(before) > 50
    assert {"cudnn_benchmark", "num_threads", "default_dtype"} <= before.keys()
    # Written but once, None where nothing is set, and what others follow.
    skipped = {"num_interop_threads", "onednn_allow_tf32", "float32_matmul_precision"}
    for name in before:
        if name not in skipped and "CUDA" not in name and not name.endswith("allow_tf32"):
            TORCH_SETTINGS.write(name, before[name])
    assert read_torch_settings() == before
