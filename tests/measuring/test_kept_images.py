"""Images beyond the bound lie in files, and are what they were."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from fixtures.measuring.kept_images import KeptImages
from fixtures.measuring.observation import Observation
from fixtures.measuring.observations import Observations
from fixtures.records.images import Images
from tests.support.fake_device import FakeDevice
from tests.support.fake_scenarios import IMAGES, fake_scenario, observation


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def mapped(images: Images) -> bool:
    return isinstance(images.base, np.memmap)


def test_observations_keep_the_first_images_in_memory_and_map_the_others(folder: Path) -> None:
    drawn = {f"fake-{number}": IMAGES * (number / 4) for number in range(1, 5)}

    def observer(scenario: Any, device: Any) -> Observation:
        return observation(scenario.id, images=drawn[scenario.id].copy())

    observations = Observations(FakeDevice(), observer, KeptImages(2 * IMAGES.nbytes))
    seen = [observations.get(fake_scenario(lambda: None, str(n))) for n in range(1, 5)]
    assert [mapped(one.images) for one in seen] == [False, False, True, True]
    for one in seen:
        assert one.images.dtype == IMAGES.dtype
        assert np.array_equal(one.images, drawn[one.scenario])
    [files] = folder.iterdir()
    assert sum(path.stat().st_size for path in files.iterdir()) > 2 * IMAGES.nbytes
    seen[3].images[:] = 0  # as what is in memory may be written to
    del seen, observations
    assert not list(folder.iterdir())


def test_a_smaller_one_still_finds_room(folder: Path) -> None:
    kept = KeptImages(IMAGES.nbytes)
    assert mapped(kept.kept(np.concatenate([IMAGES] * 2)))
    assert not mapped(kept.kept(IMAGES))


def test_on_a_full_disk_they_stay_in_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, images: Images, **_: Any) -> NoReturn:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", fail)
    kept = KeptImages(0)
    assert kept.kept(IMAGES) is IMAGES
    [files] = folder.iterdir()
    assert not list(files.iterdir())
