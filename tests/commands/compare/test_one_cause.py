"""What came for one reason is one finding, and what that does not explain has its own."""

from __future__ import annotations

import pytest

from fixtures.records.outcome import Outcome
from tests.commands.compare.test_findings import WALK, compared, findings_in, side
from tests.support.counting import host_calls, with_functions

MATH = {
    "aten::bmm in Attention": 448,
    "aten::_safe_softmax in Attention": 224,
    "aten::_to_copy in Attention": 1120,
}
EFFICIENT = {
    "aten::_scaled_dot_product_efficient_attention in Attention": 224,
    "aten::where in Attention": 224,
}
FLASH = {"aten::_scaled_dot_product_flash_attention in Attention": 224}


@pytest.mark.parametrize(
    ("before", "now", "outcome", "cause"),
    [
        ((MATH, 9), (EFFICIENT, 2), Outcome.IMPROVEMENT, "math -> efficient) -1,344"),
        ((EFFICIENT, 2), (MATH, 9), Outcome.REGRESSION, "efficient -> math) +1,344"),
        ((EFFICIENT, 2), (FLASH, 1), Outcome.IMPROVEMENT, "efficient -> flash) -224"),
    ],
)
def test_another_kernel_of_attention_is_one_change(
    before: tuple[dict[str, int], int],
    now: tuple[dict[str, int], int],
    outcome: Outcome,
    cause: str,
) -> None:
    base, head = (side(operations, 1000 * moved) for operations, moved in (before, now))
    [finding] = findings_in(("bf16", base, head))
    assert finding.outcome is outcome
    assert finding.cause == f"operations of attention ({cause} in Attention"
    assert "operations" in finding.moved
    assert "bytes moved" in finding.moved


def test_a_blocking_copy_and_its_wait_are_one_finding() -> None:
    rope, item = "diffusers/rope.py:forward", "diffusers/s.py:step (item)"
    base = side(places={item: 20})
    head = side(
        copies={f"{rope} (to the device)": 6},
        places={item: 20, f"{rope} (copy to the device)": 6, "diffusers/x.py:encode (item)": 2},
        steps={f"{rope} (to the device)": 2, f"{rope} (copy to the device)": 2},
    )
    [finding] = findings_in(("bf16", base, head))
    assert finding.outcome is Outcome.REGRESSION
    assert finding.cause.startswith("copy to the device +6 (+2 a step)")
    assert finding.cause.endswith(f"at {rope}")
    for figure in ("synchronisations", "copies to the device", "bytes copied to the device"):
        assert figure in finding.moved


def test_calls_explain_what_is_in_proportion_to_them_and_no_more() -> None:
    both, half = ({"denoiser (batch of 1)": count} for count in (6, 3))
    more = {"aten::clone in ResnetBlock2D": 2000}
    beyond, calls = findings_in(("bf16", side(calls=half), side(more, 3000, calls=both)))
    assert beyond.cause == "clone +2,000 in ResnetBlock2D"
    assert "operations +200.0 %" in beyond.moved
    assert calls.cause == "calls of denoiser (batch of 1) +3"
    assert calls.says == "computes something else"
    assert "operations" not in calls.moved

    within = {"aten::clone in ResnetBlock2D": 1000}
    [calls] = findings_in(("bf16", side(calls=half), side(within, 2000, calls=both)))
    assert calls.cause == "calls of denoiser (batch of 1) +3"
    assert "operations +100.0 %" in calls.moved

    slow = with_functions(host_calls(6000), {WALK: 5000})
    fast = with_functions(host_calls(420), {WALK: 20})
    calls, gain = findings_in(("bf16", side(calls=both, work=slow), side(calls=half, work=fast)))
    assert (calls.outcome, gain.outcome) == (Outcome.REGRESSION, Outcome.PASS)
    assert WALK in gain.cause
    assert "host calls (a step) -96.0 %" in gain.moved


def test_calls_are_put_down_to_the_functions_that_moved_that_way_by_how_much() -> None:
    """A loop of torch's is mended, and beside it a little moves either way."""
    fill, embedding, check = (
        "torch/_tensor.py:fill_",
        "diffusers/e.py:embed",
        "diffusers/c.py:check",
    )
    before = with_functions(host_calls(once=60), {embedding: 53}, {fill: 43_680, check: 4})
    now = with_functions(host_calls(once=60), {embedding: 50, WALK: 40}, {check: 90})
    findings = findings_in(("bf16", side(work=before), side(work=now)))
    assert [(finding.outcome, finding.cause) for finding in findings] == [
        (Outcome.REGRESSION, f"{WALK} +40 a step"),
        (Outcome.IMPROVEMENT, f"{fill} -43,680 outside of the steps"),
    ]
    verdicts = {
        verdict.metric: verdict.detail
        for verdict in compared(("bf16", side(work=before), side(work=now))).verdicts
        if verdict.metric.startswith(("host calls", "torch"))
    }
    assert verdicts == {
        "host calls (a step)": f"{WALK} +40 a step",
        "host calls (in all)": f"{WALK} +40 a step, {check} +86 outside of the steps",
        "torch's host calls (in all)": f"{fill} -43,680 outside of the steps",
    }
