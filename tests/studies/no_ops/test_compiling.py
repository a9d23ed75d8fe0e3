"""What is compiled runs as it is, and acts if it is called."""

from __future__ import annotations

import torch

from fixtures.studies.no_ops.calls import calls
from fixtures.studies.no_ops.compiling import compiling_counted
from fixtures.studies.no_ops.trial import Found
from tests.studies.no_ops.trying import STEPS, found_by, tried


def test_blocks_that_are_called_act() -> None:
    found = tried(calls()["torch_compile"])

    # One block and two single ones, once in each step.
    why = f"calls of compiled blocks (4 of 4) 0 -> {4 * STEPS}"
    assert found == Found("this", "acts", why)


def test_blocks_of_which_some_are_called_are_told_apart() -> None:
    found = found_by("pipeline.vae.encoder.compile()\npipeline.vae.decoder.compile()")

    assert found.why == "calls of compiled blocks (1 of 2) 0 -> 1"


def test_a_model_that_accepts_it_and_never_calls_a_compiled_block_is_silent() -> None:
    lines = "pipeline.vae._repeated_blocks = ['Encoder']\npipeline.vae.compile_repeated_blocks()"

    assert found_by(lines) == Found("this", "silent")
    assert found_by(lines.replace("Encoder", "Decoder")).verdict == "acts"


def test_a_model_without_repeated_blocks_refuses() -> None:
    found = found_by("pipeline.vae.compile_repeated_blocks()")

    assert found.verdict == "refused"
    assert found.why.startswith("ValueError: `_repeated_blocks` attribute is empty.")


def test_nothing_is_compiled_and_torch_compiles_again_afterwards() -> None:
    before = torch.compile
    layer = torch.nn.Linear(2, 2)

    with compiling_counted() as compiled:
        layer.compile(fullgraph=True)
        assert compiled.by_name() == {}
        plain = torch.nn.Module.__call__(layer, torch.ones(1, 2))

        @torch.compile(dynamic=True)
        def doubled(values: torch.Tensor) -> torch.Tensor:
            return 2 * values

        assert torch.equal(doubled(plain), 2 * plain)

    assert compiled.by_name() == {"compiled blocks (2 of 2)": 2}
    assert torch.compile is before
