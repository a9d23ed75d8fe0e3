"""Classes that the suite has a workload for, without weights; and what comes from the hub."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from huggingface_hub.utils._paths import filter_repo_objects

from fixtures.catalogue.matrix import chosen_workloads, find_workload
from fixtures.catalogue.workloads import WORKLOADS, default_workloads
from fixtures.catalogue.workloads.base import WorkloadError
from fixtures.catalogue.workloads.by_configuration import workload as by_configuration
from fixtures.catalogue.workloads.by_configuration.workload import (
    check_weights_of,
    workload_of_folder,
)
from fixtures.catalogue.workloads.twins import SMALL, twin_of
from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.worker.observation import observe
from tests.support.configurations import write_pipeline
from tests.support.scenarios import find_scenario

KNOWN = ["sd15", "sdxl", "sd3", "flux", "cogvideox-5b"]


def without_weights(folder: Path) -> Path:
    for path in folder.rglob("*.safetensors"):
        path.unlink()
    return folder


@pytest.fixture(params=KNOWN)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """The name of a workload, and a small pipeline of its class, complete."""
    SMALL[request.param]("", torch.float32).save_pretrained(tmp_path / "mine")
    return request.param, tmp_path / "mine"


def test_a_known_class_takes_its_workload_s_call(
    stored: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, folder = stored
    twin = twin_of(name)
    monkeypatch.setitem(WORKLOADS, twin.name, twin)  # as where compiled code is counted
    workload = workload_of_folder(str(without_weights(folder)))
    assert (workload.name, workload.call) == (name, WORKLOADS[name].call)
    assert workload.weights == str(folder)


@pytest.mark.parametrize("name", ["wan-14b", "wan-1.3b", "wan2.2-a14b", "wan2.2-5b"])
def test_of_several_workloads_of_a_class_the_likest_is_taken(name: str, tmp_path: Path) -> None:
    source: Any = WORKLOADS[name].source
    (tmp_path / "transformer").mkdir()
    index: dict[str, Any] = {"transformer_2": [None, None]}
    index |= {name: entry for name, entry in source.index.items() if isinstance(entry, list)}
    (tmp_path / "model_index.json").write_text(json.dumps({"_class_name": "WanPipeline", **index}))
    config = json.dumps(source.configs["transformer"])
    (tmp_path / "transformer" / "config.json").write_text(config)
    assert workload_of_folder(str(tmp_path)).name == name


def test_without_its_weights_a_pipeline_is_the_same_but_for_their_values(
    stored: tuple[str, Path],
) -> None:
    name, folder = stored
    workload = WORKLOADS[name].with_weights(str(folder))
    complete = workload.load(torch.float16)
    without_weights(folder)
    configured = workload.by_configuration.load(torch.float16)
    assert configured.components.keys() == complete.components.keys()
    for part, component in complete.components.items():
        other = getattr(configured, part)
        assert type(other) is type(component)
        if isinstance(component, torch.nn.Module):
            expected, made = (
                {key: (value.shape, value.dtype) for key, value in model.state_dict().items()}
                for model in (component, other)
            )
            assert made == expected
    with pytest.raises(WorkloadError, match="whole or in shards"):
        WORKLOADS[name].with_weights(str(folder)).load(torch.float16)


def test_on_the_simulated_device_the_weights_need_not_be_there(tmp_path: Path) -> None:
    SMALL["sd15"]("", torch.float32).save_pretrained(tmp_path)
    device, scenario = SimulatedDevice(), find_scenario("sd15", "fp16", str(tmp_path))
    call = replace(scenario.workload.call, width=64, height=64, steps=3)
    small = replace(scenario, workload=replace(scenario.workload, call=call))
    complete = observe(replace(small, workload=replace(small.workload)), device)
    without_weights(tmp_path)
    configured = observe(replace(small, workload=replace(small.workload)), device)
    assert configured.component_peak_bytes == complete.component_peak_bytes
    assert configured.counts == complete.counts


def test_the_class_decides_only_on_the_simulated_device(tmp_path: Path) -> None:
    folder = str(write_pipeline("LTXPipeline", tmp_path / "clip"))
    assert chosen_workloads("simulated", (), folder) == ("clip",)
    assert chosen_workloads("simulated", ("flux",), folder) == ("flux",)
    for device in ("cpu", "cuda"):
        assert chosen_workloads(device, (), folder) == default_workloads(device)
    for weights in ("", "random"):
        assert chosen_workloads("simulated", (), weights) == default_workloads("simulated")
    assert find_workload("clip", folder) is workload_of_folder(folder)
    assert find_scenario("clip", "bf16", folder).stored_as.startswith("clip@clip-")
    of_another_class = str(write_pipeline("LTXPipeline", tmp_path / "flux"))
    assert workload_of_folder(of_another_class).name == "flux-LTXPipeline"


def test_of_a_hub_id_only_configurations_are_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The patterns are the hub's library's own to apply; here they are applied to a copy."""
    published, snapshot = tmp_path / "published", tmp_path / "snapshot"
    SMALL["flux"]("", torch.float32).save_pretrained(published)
    (published / "vae" / "code.py").write_text("raise SystemExit")
    (published / "vae" / "diffusion_pytorch_model.safetensors.index.json").write_text("{}")

    def download(hub_id: str, **patterns: Any) -> str:
        files = [path for path in published.rglob("*") if path.is_file()]
        names = [str(path.relative_to(published)) for path in files]
        for name in filter_repo_objects(names, **patterns):
            (snapshot / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(published / name, snapshot / name)
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    workload = workload_of_folder("owner/of-a-hub-id")
    assert workload.name == "flux"
    workload.by_configuration.load(torch.float32)
    endings = {path.suffix for path in snapshot.rglob("*") if path.is_file()}
    assert endings <= {".json", ".txt", ".model", ".jinja"}
    assert not [*snapshot.rglob("*.index.json")]


def test_weights_of_a_hub_id_are_checked_by_their_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, workload = tmp_path / "model_index.json", WORKLOADS["sd15"].with_weights("owner/name")
    monkeypatch.setattr(by_configuration, "configurations_of", lambda weights: tmp_path)
    index.write_text('{"_class_name": "StableDiffusionPipeline"}')
    check_weights_of(workload)
    index.write_text('{"_class_name": "FluxPipeline"}')
    with pytest.raises(WorkloadError, match=r"'owner/name' holds 'FluxPipeline', .* flux$"):
        check_weights_of(workload)
    for nobody_s in ("", "random"):
        check_weights_of(WORKLOADS["sd15"].with_weights(nobody_s))
