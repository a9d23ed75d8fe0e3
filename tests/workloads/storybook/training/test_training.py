"""Training can stop anywhere and go on as if it had not, and the script runs from end to end."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fixtures.workloads.storybook.training import loop, train
from fixtures.workloads.storybook.training.loop import Draw, Stage, Worker, checkpoint_facts
from fixtures.workloads.storybook.training.optimizer import MatrixOptimizer, Muon
from fixtures.workloads.storybook.training.schedule import Schedule

pytestmark = pytest.mark.long


class InterruptedRunError(Exception):
    pass


def train_toy(
    folder: Path,
    *,
    steps: int = 4,
    interrupted_at: int | None = None,
    until: int | None = None,
) -> nn.Module:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 3))

    def loss_of(draw: Draw) -> tuple[Tensor, dict[str, float]]:
        if draw.step == interrupted_at:
            raise InterruptedRunError
        images = torch.randn(2, 3, 8, 8, generator=draw.noise)
        loss = (network(images) - draw.choice.random()).pow(2).mean()
        return loss, {"loss": loss.item()}

    stage = Stage(
        "toy",
        dict(network.named_parameters()),
        Schedule(steps, rate=0.01, warm_up_steps=2, decay_share=0.5),
        Worker(0, torch.device("cpu"), folder, torch.float32),
        seed=1,
        elementwise=frozenset(),
        weight_decay=0.01,
    )
    stage.run(loss_of, until)
    return network


def weights(network: nn.Module) -> list[list[float]]:
    return [parameter.detach().flatten().tolist() for parameter in network.parameters()]


@pytest.mark.parametrize("interrupted_at", [1, 2, 3])
def test_a_resumed_run_ends_with_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted_at: int
) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_EVERY_STEPS", 1)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    with pytest.raises(InterruptedRunError):
        train_toy(broken, interrupted_at=interrupted_at)
    assert checkpoint_facts(broken / "toy.safetensors")["steps_done"] == interrupted_at
    assert weights(train_toy(broken)) == weights(train_toy(whole))


def test_a_finished_run_is_not_trained_further(tmp_path: Path) -> None:
    first = weights(train_toy(tmp_path))
    assert weights(train_toy(tmp_path, interrupted_at=0)) == first


def test_a_run_that_ends_early_has_the_average_of_that_step_and_goes_on_from_it(
    tmp_path: Path,
) -> None:
    for folder in ("whole", "early"):
        (tmp_path / folder).mkdir()
    whole = weights(train_toy(tmp_path / "whole"))
    early = weights(train_toy(tmp_path / "early", until=3))
    assert checkpoint_facts(tmp_path / "early" / "toy.safetensors")["steps_done"] == 3
    assert early != whole
    assert weights(train_toy(tmp_path / "early", until=3, interrupted_at=3)) == early
    assert weights(train_toy(tmp_path / "early")) == whole


def test_a_checkpoint_leaves_no_half_file(tmp_path: Path) -> None:
    train_toy(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["toy.safetensors"]


def test_a_convolution_is_orthogonalised_in_place() -> None:
    weight = nn.Parameter(torch.randn(4, 3, 3, 3))
    bias = nn.Parameter(torch.zeros(4))
    named = [("conv", weight), ("bias", bias)]
    optimizer = MatrixOptimizer(named, rate=0.1, weight_decay=0.0, elementwise=frozenset())
    before = weight.detach().clone()
    weight.grad = torch.randn_like(weight)
    optimizer.step()
    singular_values = torch.linalg.svdvals((weight.detach() - before).view(4, -1))
    assert singular_values.min() > 0.5 * singular_values.max()


def test_muon_is_torchs_own_but_for_the_rounding() -> None:
    torch.manual_seed(0)
    start, gradients = torch.randn(6, 10), [torch.randn(6, 10) for _ in range(4)]
    mine, theirs = (nn.Parameter(start.clone()) for _ in range(2))
    ours = Muon([mine], rate=0.01, weight_decay=0.1)
    torchs = torch.optim.Muon(
        [theirs], lr=0.01, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"
    )
    for gradient in gradients:
        mine.grad, theirs.grad = gradient.clone(), gradient.clone()
        ours.step()
        torchs.step()
    moved = (theirs - start).norm()
    assert (mine - theirs).norm() < 0.02 * moved


def test_the_rate_warms_up_stays_and_decays() -> None:
    schedule = Schedule(100, rate=1.0, warm_up_steps=10, decay_share=0.5)
    assert schedule.rate_at(0) == pytest.approx(0.1)
    assert schedule.rate_at(30) == 1.0
    assert schedule.rate_at(75) == pytest.approx(0.5)
    assert schedule.rate_at(99) == pytest.approx(0.02)


def test_the_clock_shortens_the_run_only_when_the_decay_would_not_fit() -> None:
    now = time.time()
    relaxed = Schedule(1000, 1.0, 10, decay_share=0.5, finish_by=now + 2000)
    assert relaxed.affordable_steps(100, seconds_per_step=1.0) == 1000
    pressed = Schedule(1000, 1.0, 10, decay_share=0.5, finish_by=now + 100)
    steps = pressed.affordable_steps(100, seconds_per_step=1.0)
    assert steps == math.ceil(101 / 0.5)
    assert pressed.affordable_steps(0, seconds_per_step=None) == 1000


def run_script(folder: Path, *options: str) -> Any:
    """The script on six images, one step a stage; the pipeline that it made."""
    from diffusers import StableDiffusionPipeline

    train.main([
        "--work-folder", str(folder / "work"), "--output", str(folder / "pipeline"),
        "--device", "cpu", "--workers", "1", "--images", "6",
        "--vae-steps", "1", "--decoder-steps", "1", "--unet-steps", "1", *options,
    ])  # fmt: skip
    assert not (folder / "unfinished").exists()
    return StableDiffusionPipeline.from_pretrained(folder / "pipeline")


def test_the_whole_script_makes_a_pipeline_that_is_trained_further(tmp_path: Path) -> None:
    first = run_script(tmp_path / "first")
    assert first.vae.config.scaling_factor > 0
    given = str(tmp_path / "first" / "pipeline")
    further = run_script(tmp_path / "further", "--start-from", given)
    assert further.vae.config.scaling_factor == first.vae.config.scaling_factor
    assert weights(further.vae) == weights(first.vae)
    assert weights(further.unet) != weights(first.unet)
    for config in (tmp_path / "further" / "pipeline").rglob("config.json"):
        assert given not in config.read_text(encoding="utf-8")
