"""Whatever a scenario raises becomes one sentence."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.catalogue.workloads import WorkloadError
from fixtures.records.outcome import Outcome, ScenarioError
from fixtures.worker.failures import SUITE, scenario_errors
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import fake_scenario

SCENARIO = fake_scenario(lambda: None)


class MuteError(Exception):
    def __str__(self) -> str:
        raise self


def failure(error: BaseException) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught, scenario_errors(SCENARIO, FakeDevice()):
        raise error
    assert "\n" not in str(caught.value)
    return caught.value


EXHAUSTED = (
    "CUDA out of memory.",
    "DefaultCPUAllocator: can't allocate memory: you tried 1 byte",
    "DefaultCPUAllocator: not enough memory: you tried 1 byte",
    "[Errno 12] Cannot allocate memory",
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate",
)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ZeroDivisionError("one\n two"), "fake-tried: raised ZeroDivisionError: one two"),
        (ValueError(), "fake-tried: raised ValueError: no message"),
        (WorkloadError("No such folder."), "fake-tried: No such folder."),
        (MemoryError("huge"), "fake-tried: ran out of memory on fake (huge); free memory, or"),
        (pytest.skip.Exception("why"), "fake-tried: raised Skipped: why"),
        (SystemExit(3), "fake-tried: raised SystemExit: 3"),
        (MuteError(), "fake-tried: raised MuteError: a message that cannot be printed"),
        (RuntimeError("x" * 10_000), "fake-tried: raised RuntimeError: xxx"),
        *((RuntimeError(words), "fake-tried: ran out of memory on fake") for words in EXHAUSTED),
    ],
)
def test_what_raises_is_broken_with_one_sentence(error: BaseException, sentence: str) -> None:
    caught = failure(error)
    assert caught.outcome is Outcome.BROKEN
    assert str(caught).startswith(sentence)
    assert len(str(caught)) < 500


SITE = "/opt/site-packages"
LIBRARY = {
    f"{SITE}/diffusers/pipelines/pipeline.py": "def call():\n  forward()",
    f"{SITE}/diffusers/models/transformer.py": "def forward():\n\n  attention()",
    f"{SITE}/accelerate/hooks.py": "def attention():\n  torch_function()",
    f"{SITE}/torch/functional.py": "def torch_function():\n  raise RuntimeError('mixed dtypes')",
}


def library(sources: Mapping[str, str]) -> dict[str, Any]:
    """The names of modules that lie at these paths."""
    names: dict[str, Any] = {}
    for path, source in sources.items():
        exec(compile(source, path, "exec"), names)  # noqa: S102
    return names


def test_a_failure_names_the_line_of_the_library() -> None:
    call = library(LIBRARY)["call"]
    with pytest.raises(ScenarioError) as caught, scenario_errors(SCENARIO, FakeDevice()):
        call()
    assert caught.value.reason == "raised RuntimeError: mixed dtypes (accelerate/hooks.py:2)"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/opt/site-packages/diffusers/models/transformers/x.py", "models/transformers/x.py:2"),
        ("/home/me/diffusers/src/diffusers/models/x.py", "models/x.py:2"),
        ("/home/me/src/diffusers/.venv/site-packages/torch/nn/x.py", ""),
        ("/home/me/diffusers/fixtures/devices/x.py", ""),
    ],
)
def test_a_folder_s_name_makes_no_library(path: str, line: str) -> None:
    call = library({path: "def call():\n  raise ValueError('no')"})["call"]
    with pytest.raises(ScenarioError) as caught, scenario_errors(SCENARIO, FakeDevice()):
        call()
    where = f" (diffusers/{line})" if line else ""
    assert caught.value.reason == f"raised ValueError: no{where}"


def test_what_the_suite_s_own_code_raised_is_not_put_down_to_a_library() -> None:
    own = "def call_none():\n  None + 1\ndef call_library():\n  call()"
    functions = library({**LIBRARY, f"{SUITE}/catalogue/techniques/prompts.py": own})
    for name, line in (
        ("call_none", "(in the suite's own fixtures/catalogue/techniques/prompts.py:2)"),
        ("call_library", "(accelerate/hooks.py:2)"),
    ):
        with pytest.raises(ScenarioError) as caught, scenario_errors(SCENARIO, FakeDevice()):
            functions[name]()
        assert caught.value.reason.endswith(line)


@pytest.mark.parametrize(
    "error",
    [ScenarioError("other", Outcome.INCONCLUSIVE, "too hot"), KeyboardInterrupt(), GeneratorExit()],
    ids=lambda error: type(error).__name__,
)
def test_what_is_no_fault_of_the_scenario_passes(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, scenario_errors(SCENARIO, FakeDevice()):
        raise error
    assert caught.value is error


def test_a_package_that_is_absent_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    optional = SimpleNamespace(is_vanished_available=lambda: False)
    monkeypatch.setitem(sys.modules, "diffusers.utils", optional)
    for error in (
        ModuleNotFoundError("No module named 'vanished'", name="vanished.part"),
        NameError("name 'vanished' is not defined", name="vanished"),
    ):
        reason = failure(error).reason
        assert reason.startswith(f"needs vanished, which is not installed ({type(error).__name__}")
        assert "by naming it beside diffusers" in reason
    for error in (
        NameError("name 'misspelt' is not defined", name="misspelt"),
        ModuleNotFoundError("No module named 'torch.gone'", name="torch.gone"),
    ):
        assert failure(error).reason == f"raised {type(error).__name__}: {error}"
