"""What a picture lost by a technique, from the stored baselines."""

from __future__ import annotations

from fixtures.commands.fit.answering import image_losses
from fixtures.records.baseline_store import BaselineStore
from fixtures.settings import BASELINES
from fixtures.verdicts.likeness import has_flip


def test_a_loss_is_that_of_the_stored_entry_or_of_the_precision_beneath() -> None:
    names = ("fp32", "bf16", "model_cpu_offload", "layerwise_casting", "bitsandbytes_nf4")
    losses_of = image_losses(names, "bf16")
    ssim = {
        name: {loss.workload: loss.ssim for loss in losses} for name, losses in losses_of.items()
    }
    store = BaselineStore(BASELINES)

    def stored(device: str, name: str) -> float | None:
        entry = store.entry(device, "storybook-dit", name)
        assert entry is not None
        return entry.ssim

    dit = {name: models["storybook-dit"] for name, models in ssim.items()}
    assert dit["fp32"] == 1.0
    assert dit["bf16"] == dit["model_cpu_offload"] == stored("simulated", "bf16")
    assert dit["layerwise_casting"] == stored("simulated", "layerwise_casting")
    assert dit["bitsandbytes_nf4"] == stored("cpu", "bitsandbytes_nf4")  # no card draws it here
    assert dit["bitsandbytes_nf4"] < dit["layerwise_casting"] < dit["bf16"] < 1
    assert set(ssim["bitsandbytes_nf4"]) == {"storybook-dit"}
    assert image_losses(["fp32"], "fp16") == {"fp32": losses_of["fp32"]}
    flips = {name: losses[-1].flip for name, losses in losses_of.items()}
    assert (flips["fp32"] == 0.0) == has_flip()
    assert all((flip is not None) == has_flip() for flip in flips.values())


def test_what_is_not_stored_has_no_loss() -> None:
    assert image_losses(["torch_compile_dynamic"], "bf16") == {}
