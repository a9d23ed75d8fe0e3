"""What the Diffusers docs print for Stable Diffusion 1.5, checked on the whole model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.units import MIB
from fixtures.techniques import CATALOGUE
from fixtures.workloads import WORKLOADS

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def device() -> Iterator[SimulatedDevice]:
    simulated = SimulatedDevice()
    with simulated.entered():
        yield simulated


def applied(technique: str, device: SimulatedDevice) -> Any:
    return CATALOGUE[technique].applied(WORKLOADS["sd15"], device)


def unet_mib(pipeline: Any) -> float:
    """Bytes of the UNet's weights."""
    return float(sum(p.numel() * p.element_size() for p in pipeline.unet.parameters())) / MIB


def test_channels_last_gives_the_strides_that_the_docs_print(device: SimulatedDevice) -> None:
    with applied("fp16", device) as pipeline:
        assert pipeline.unet.conv_out.weight.stride() == (2880, 9, 3, 1)
    with applied("channels_last", device) as pipeline:
        assert pipeline.unet.conv_out.weight.stride() == (2880, 1, 960, 320)


def test_fp8_storage_halves_the_weights_of_the_unet(device: SimulatedDevice) -> None:
    """Norms and embeddings stay as they are; they are a tiny part of 1,639.4 MiB."""
    with applied("fp16", device) as pipeline:
        whole = unet_mib(pipeline)
    with applied("layerwise_casting", device) as pipeline:
        halved = unet_mib(pipeline)
    assert whole == pytest.approx(1639.4, abs=0.1)
    assert halved == pytest.approx(whole / 2, rel=0.002)
