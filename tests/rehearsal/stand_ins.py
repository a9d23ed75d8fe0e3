"""Which module has what replaced, as soon as it is imported."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType

STAND_INS: Mapping[str, tuple[str, str]] = {
    "fixtures.devices.host": ("driver", "put_under_host"),
    "pynvml": ("driver", "put_under_pynvml"),
    "fixtures.devices.cuda": ("card", "insert"),
    "fixtures.worker.timed": ("clock", "put_into"),
    "fixtures.worker.frozen.program": ("brief", "leave_inference_mode"),
    "fixtures.worker.rounds": ("brief", "plan_few_rounds"),
    "fixtures.catalogue.techniques": ("brief", "slow_down"),
    "fixtures.catalogue.workloads": ("brief", "shorten_calls"),
    "fixtures.suite.refreshing": ("brief", "take_few_samples"),
    "fixtures.commands.refresh": ("brief", "take_few_samples"),
    "fixtures.commands.compare.environments": ("installer", "install_nothing"),
}
"""By module: the file here and its function, which is called with the module."""


def expect() -> None:
    """Replace what is to be replaced when it is imported, and not before: imports are slow."""
    sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that the other finders find, and has something replaced in them."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in STAND_INS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module
            spec.loader.exec_module = partial(_loaded, load)  # type: ignore[method-assign]
        return spec


def _loaded(load: Callable[[ModuleType], None], module: ModuleType) -> None:
    load(module)
    file, function = STAND_INS[module.__name__]
    getattr(importlib.import_module(f"tests.rehearsal.{file}"), function)(module)
