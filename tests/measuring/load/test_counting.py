"""What loading is counted by: the same in every load, and each fault is found by its figure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers import StableDiffusionPipeline
from packaging.version import Version
from safetensors.torch import load_file

from fixtures.measuring.load import folders as copies
from fixtures.measuring.load.counting import counted
from fixtures.measuring.load.folders import SHARDS, write_copy
from fixtures.metrics.load import METRIC
from fixtures.records.load import CALLS, FILES, FIRST_OPERATIONS, MADE, PEAK, READ, Load
from fixtures.records.outcome import Outcome
from fixtures.workloads import WORKLOADS
from fixtures.workloads.loading import EmbeddedSource, dtype_keyword
from fixtures.workloads.pipeline_folder import check_folder
from fixtures.workloads.plain_folder import read_json
from tests.support.loads import sides

Counts = Mapping[str, Mapping[str, int]]
SOURCE = WORKLOADS["storybook"].source


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("load")
    assert isinstance(SOURCE, EmbeddedSource)
    for name in ("whole", "shards"):
        write_copy(SOURCE.folder, SOURCE.layout, place / name, in_shards=name == "shards")
    return place


def load(folder: Path) -> Any:
    return StableDiffusionPipeline.from_pretrained(
        folder, use_safetensors=True, **{dtype_keyword("diffusers"): torch.float16}
    )


def read_twice(folder: Path) -> Any:
    for file in folder.rglob("*.safetensors"):
        load_file(file)
    return load(folder)


def keep_a_copy(folder: Path) -> Any:
    pipeline = load(folder)
    return pipeline, [weight.clone() for weight in pipeline.unet.parameters()]


def open_one_more_in_each_component(folder: Path) -> Any:
    for config in folder.glob("*/*config.json"):
        config.read_bytes()
    return load(folder)


def call_more(folder: Path) -> Any:
    for _ in range(3000):
        Version("1.0")
    return load(folder)


def load_in_a_thread(folder: Path) -> Any:
    with ThreadPoolExecutor() as pool:
        return pool.submit(load, folder).result()


def regressions(base: Counts, head: Counts) -> set[str]:
    """The figures that are worse on head by more than may be."""
    before, now = (
        Load({name: parts for name, parts in side.items() if name != FIRST_OPERATIONS}, {})
        for side in (base, head)
    )
    figures = METRIC.compare(sides(before, now))
    return {one.verdict.metric for one in figures if one.verdict.outcome is Outcome.REGRESSION}


@pytest.fixture(scope="module")
def sound(folders: Path) -> Counts:
    for _ in range(3):  # what is imported, read and cached but once
        load(folders / "whole")
    return counted(folders / "whole", lambda: load(folders / "whole"))


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (load_in_a_thread, set()),
        (read_twice, {FILES, READ, MADE}),
        (keep_a_copy, {PEAK, MADE}),
        (open_one_more_in_each_component, {FILES}),
        (call_more, {CALLS}),
    ],
)
def test_each_fault_is_found_by_its_figures(
    folders: Path, sound: Counts, fault: Callable[[Path], Any], found: set[str]
) -> None:
    counts = counted(folders / "whole", lambda: fault(folders / "whole"))
    assert regressions(sound, counts) == found


def test_every_load_counts_the_same(folders: Path) -> None:
    folder = folders / "whole"
    load(folder)  # what was warned of before, pytest lets be warned of again
    first, second = (counted(folder, lambda: load(folder)) for _ in range(2))
    assert first == second


def test_bytes_and_peak_are_those_of_the_folder_and_each_file_counts(
    folders: Path, sound: Counts
) -> None:
    files = [path for path in (folders / "whole").rglob("*") if path.is_file()]
    sizes = {path: path.stat().st_size for path in files}
    weights = sum(size for path, size in sizes.items() if path.suffix == ".safetensors")
    assert sound[READ]["mapped"] == weights
    assert sum(sound[PEAK].values()) == pytest.approx(weights, rel=0.05)
    opened = {"model_index.json": 1, "unet": 2, "vae": 2, "text_encoder": 2}
    assert sound[FILES].items() >= opened.items()
    if sys.platform == "linux":
        assert sound[READ]["read"] >= sum(sizes.values()) - weights


def test_shards_hold_the_same_weights_in_as_many_files(folders: Path) -> None:
    whole, shards = (load(folders / name) for name in ("whole", "shards"))
    for name in ("unet", "vae", "text_encoder"):
        assert len([*(folders / "shards" / name).glob("*.safetensors")]) == SHARDS
        models = [getattr(pipeline, name).state_dict() for pipeline in (whole, shards)]
        assert models[0].keys() == models[1].keys()
        assert all(torch.equal(models[0][key], models[1][key]) for key in models[0])
    names = load_file(folders / "whole/text_encoder/model.safetensors")
    assert all(name.startswith("text_model.") for name in names), "as transformers 4 reads them"
    embedded = WORKLOADS["storybook"].load(torch.float16)
    assert torch.equal(
        next(embedded.text_encoder.parameters()), next(shards.text_encoder.parameters())
    )


def test_transformers_4_gets_the_tokenizers_that_it_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(SOURCE, EmbeddedSource)
    monkeypatch.setattr(copies, "version_of", lambda library: (4, 57))
    copies.write_copy(SOURCE.folder, SOURCE.layout, tmp_path / "copy", in_shards=False)
    assert check_folder(tmp_path / "copy", SOURCE.layout)["tokenizer"] == "CLIPTokenizerFast"
    config = read_json(tmp_path / "copy", "tokenizer/tokenizer_config.json")
    assert (config["tokenizer_class"], config["model_max_length"]) == ("CLIPTokenizerFast", 77)
