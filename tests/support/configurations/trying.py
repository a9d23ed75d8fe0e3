"""What becomes of a published pipeline: an answer by its configurations alone, or the reason."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fixtures.devices.simulated.device import SimulatedDevice
from fixtures.records.run import WHOLE
from fixtures.techniques import CATALOGUE
from fixtures.techniques.registry import models
from fixtures.workloads.by_configuration.workload import workload_of_folder
from tests.support.configurations import FULL_SIZE, write_pipeline

STEPS = 2
DENOISERS = ("unet", "transformer", "transformer_2", "prior", "decoder")
REFUSED = {
    # What diffusers 0.42.1 with transformers 5.23 cannot run on any device:
    # https://github.com/huggingface/diffusers/issues/13638, /14124 (of another pipeline), /14008
    "EasyAnimateControlPipeline": "unexpected keyword argument 'text_encoder_index'",
    "I2VGenXLPipeline": "'CLIPTextModel' object has no attribute 'text_model'",
    "StableCascadeDecoderPipeline": "which is of a foreign library",
    # What needs a package, or weights, that no configuration names.
    "CosmosTextToWorldPipeline": "`cosmos_guardrail` is not installed",
    "KolorsPipeline": "needs sentencepiece",
    "OmniGenPipeline": "needs what is not installed (NameError: name 'OmniGenMultiModalProcessor'",
    "StableAudioPipeline": "needs torchsde",
    # What no simulation knows.
    "HiDreamImagePipeline": "reads values of a device tensor",
    "MarigoldDepthPipeline": "reads values of a device tensor",
    "VisualClozePipeline": "which is made of other pipelines",
}
"""What is not answered, and words of the reason that is given."""


@dataclass(frozen=True)
class Row:
    """One pipeline: what its call in half precision takes, or why there is no answer.

    `weights` is the number of weights by component, `peak_bytes` what is allocated at most, and
    `reason` empty where there is an answer.
    """

    name: str
    weights: dict[str, int]
    peak_bytes: int
    seconds: float
    reason: str = ""

    @property
    def denoiser(self) -> int:
        """The number of weights of all its denoisers."""
        return sum(count for name, count in self.weights.items() if name in DENOISERS)


def rows(names: Iterable[str], technique: str = "bf16") -> Iterator[Row]:
    """Try each of these classes, one after the other, with the call that it has by default."""
    for name in names:
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            path = write_pipeline(name, Path(folder) / "pipeline", FULL_SIZE)
            weights, peak, reason = dict[str, int](), 0, ""
            try:
                weights, peak = _tried(path, technique)
            except Exception as error:  # a refusal, or whatever the libraries raise
                said = str(error).replace(str(path), "...").splitlines()
                reason = said[0] if said else type(error).__name__
        yield Row(name, weights, peak, time.perf_counter() - begun, reason)


def _tried(folder: Path, technique: str) -> tuple[dict[str, int], int]:
    """Weights by component, and the peak of a short call, with which that of a long one agrees."""
    workload = workload_of_folder(str(folder)).by_configuration
    short = replace(workload, call=replace(workload.call, steps=STEPS))
    device = SimulatedDevice()
    with device.entered(), CATALOGUE[technique].applied(short, device) as pipeline:
        weights = {
            name: sum(weight.numel() for weight in model.parameters())
            for name, model in models(pipeline).items()
        }
        with device.observe(pipeline) as trace:
            short.draw(pipeline)
    return weights, int(trace.component_peak_bytes[WHOLE])


def denoisers_of(name: str) -> list[str]:
    """The components that denoise in a published pipeline."""
    parts = FULL_SIZE["pipelines"][name]["parts"]
    return [parts[part] for part in DENOISERS if part in parts]
