"""What a picture lost by a technique, from the stored baselines."""

from __future__ import annotations

from fixtures.commands.fit.answering import lowest_ssim
from fixtures.records.baseline_store import BaselineStore
from fixtures.settings import BASELINES


def test_a_loss_is_that_of_the_stored_entry_or_of_the_precision_beneath() -> None:
    names = ("fp32", "bf16", "model_cpu_offload", "layerwise_casting", "bitsandbytes_nf4")
    ssim = lowest_ssim(names, "bf16")
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
    assert lowest_ssim(["fp32"], "fp16") == {"fp32": ssim["fp32"]}
    assert lowest_ssim(["torch_compile_dynamic"], "bf16") == {}
