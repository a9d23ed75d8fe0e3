"""OMP_NUM_THREADS as OpenMP reads it, and one sentence where it is no number of threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from fixtures.devices import DeviceError
from fixtures.devices.cpu import CpuDevice


@pytest.fixture(autouse=True)
def _threads_put_back() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("asked", "threads"),
    [(None, 1), ("", 1), (" ", 1), ("1", 1), (" 2 ", 2), ("2,4", 2), ("2 , 1", 2)],
)
def test_the_outermost_number_is_torchs(
    asked: str | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if asked is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert CpuDevice().hardware["threads"] == threads


@pytest.mark.parametrize(
    "asked",
    [
        "0",
        "-1",
        "00",
        "two",
        "1.5",
        "4,",
        ",4",
        "4,0",
        "4;2",
        "1e3",
        "9" * 400,
        "\u0664",
        "\x1b[2J",
    ],
)
def test_anything_else_is_one_sentence_with_the_remedy(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    with pytest.raises(DeviceError, match=r"^OMP_NUM_THREADS is .*: set it to 1, or") as caught:
        CpuDevice()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 150
