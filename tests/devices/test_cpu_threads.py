"""OMP_NUM_THREADS as OpenMP reads it, one sentence where it is none, and who else takes threads."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

from fixtures.devices import DeviceError
from fixtures.devices.cpu import TOKENIZER_THREADS, CpuDevice
from tests.support.programs import printed


@pytest.fixture(autouse=True)
def _threads_put_back() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("asked", "threads"), [(None, 1), (" ", 1), (" 2 ", 2), ("2 , 1", 2)])
def test_the_outermost_number_is_torchs(
    asked: str | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if asked is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert CpuDevice().hardware["threads"] == threads


@pytest.mark.parametrize("asked", ["0", "two", "1.5", "4,", "9" * 400, "\u0664", "\x1b[2J"])
def test_anything_else_is_one_sentence_with_the_remedy(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    with pytest.raises(DeviceError, match=r"^OMP_NUM_THREADS is .*: set it to 1, or") as caught:
        CpuDevice()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 150


THREADS_OF_A_TOKENIZER = """
import sys, psutil
from transformers import AutoTokenizer
from fixtures.devices.cpu import CpuDevice
from fixtures.catalogue.workloads.storybook import PIPELINE_FOLDER
tokenizer = AutoTokenizer.from_pretrained(PIPELINE_FOLDER / "tokenizer")
if sys.argv[1] == "opened":
    CpuDevice()
before = psutil.Process().num_threads()
tokenizer(["a red house"] * 8)
print(psutil.Process().num_threads() - before)
"""
"""How many threads eight prompts start."""


@pytest.mark.long
def test_several_prompts_start_no_threads_that_one_thread_would_wait_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(TOKENIZER_THREADS, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert int(printed(THREADS_OF_A_TOKENIZER, "opened")) == 0
    assert int(printed(THREADS_OF_A_TOKENIZER, "not opened")) > 0


def test_what_the_user_says_of_tokenizers_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKENIZER_THREADS, "true")
    CpuDevice()
    assert os.environ[TOKENIZER_THREADS] == "true"
