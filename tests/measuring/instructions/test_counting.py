"""The real server under Valgrind: unchanged code repeats, and more work is seen in its group."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from fixtures import catalogues
from fixtures.devices.cpu import CpuDevice
from fixtures.devices.needs import missing_valgrind
from fixtures.measuring.instructions.counter import InstructionCounter
from fixtures.metrics.instructions import LIMITS, disagreement, group_changes, judge_instructions
from fixtures.records.host_work import STEP
from fixtures.records.instructions import KERNELS, PYTHON, Instructions
from fixtures.records.outcome import Outcome
from fixtures.scenarios import find_scenario
from tests.metrics.cases import case
from tests.support.own_catalogue import nothing_kept, written
from tests.support.runs import entry

SLOWED = '''
from fixtures.techniques.registry import technique


def declare(extra):
    def apply(workload, device):
        """fp32 with more work in every step."""
        pipeline = workload.load_base(device).to(device.torch_device)
        conv_in = pipeline.unet.conv_in
        conv_in.register_forward_hook(lambda module, inputs, output: extra(output))
        yield pipeline
    apply.__name__ = extra.__name__
    technique(family="mine", document="x", activation_check=lambda context: None, min_ssim=0)(apply)


def cloning(hidden):
    return hidden.clone()


def summing(hidden):
    sum(range(60000))


for extra in (cloning, summing):
    declare(extra)
'''


@pytest.mark.long
@pytest.mark.skipif(missing_valgrind() is not None, reason=str(missing_valgrind()))
def test_unchanged_code_repeats_and_more_work_is_seen_where_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nothing_kept(monkeypatch), closing(InstructionCounter(CpuDevice())) as counter:
        catalogues.load([written(tmp_path, SLOWED)])
        names = ("fp32", "fp32", "cloning", "summing")
        with ThreadPoolExecutor(2) as pool:
            first, again, cloning, summing = pool.map(
                lambda name: counter.count(find_scenario("storybook", name)), names
            )
    stored = case(entry=entry(instructions=first))

    assert judge_instructions(stored, again).outcome is Outcome.PASS
    assert disagreement(first, again) == ""

    def beyond(now: Instructions) -> set[tuple[str, str]]:
        changes = group_changes(first, now, tuple(LIMITS))
        return {(one.group, one.part) for one in changes if one.outcome is Outcome.REGRESSION}

    assert (KERNELS, STEP) in beyond(cloning)
    assert beyond(summing) == {(PYTHON, STEP)}
    sentence = judge_instructions(stored, summing).sentence
    assert "builtin_sum" in sentence or "rangeiter_next" in sentence or "PyLong" in sentence
