"""Differences with one cause are one finding, and every difference is in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fixtures.commands.compare.__main__ import MAX_FINDINGS, closing_line, render
from fixtures.commands.compare.comparing import Compared, not_run, verdicts_on
from fixtures.commands.compare.findings import findings_of
from fixtures.metrics.latency_verdicts import LATENCY
from fixtures.metrics.values import VALUES
from fixtures.records.counts import BYTES_MOVED, FLOPS, TOTALS, Counts
from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.record import AtPeak
from fixtures.records.run import WHOLE, ScenarioRecord
from fixtures.records.units import GIB
from fixtures.report.comparison import Finding
from fixtures.verdicts.case import SideCase
from fixtures.verdicts.limits import Limits
from tests.support.counting import counted, host_calls, with_functions
from tests.support.runs import failure, run_record, scenario_record, verdict

STEPS = 3
CLONE = {"aten::clone in ResnetBlock2D": 6}
WALK = "diffusers/a.py:walk"
METRICS = ("counts", "host_calls", "component_calls", "peak_memory")
PLACE = "diffusers/schedulers/x.py:step (item)"
ROPE = "diffusers/models/rope.py:forward (to the device)"
PROMPT = "diffusers/pipelines/x.py:encode (to the device)"
AT_PROMPT = "at diffusers/pipelines/x.py:encode"
WORK = {
    "copy": (10, 0, 100),
    "matrix product": (10, 1000, 10),
    "elementwise and other": (10, 0, 10),
}
"""Calls, FLOPs and bytes by kind of operation: a copy moves ten bytes, a product 100 FLOPs."""


@dataclass(frozen=True)
class Side:
    """One side of a scenario, beside 1,000 `mm` in Attention.

    `steps` is what every step does of `more`, of `places` and of `copies`, which are by place,
    with the bytes of each copy in `copied`; `alive` are bytes at the peak, by who holds them.
    """

    more: Mapping[str, int] = field(default_factory=dict)
    moved_bytes: int = 1000
    places: Mapping[str, int] = field(default_factory=dict)
    work: Counts = field(default_factory=host_calls)
    steps: Mapping[str, int] = field(default_factory=dict)
    copies: Mapping[str, int] = field(default_factory=dict)
    copied: int = 1000
    flops: int = 100_000
    calls: Mapping[str, int] = field(default_factory=lambda: {"denoiser (batch of 2)": STEPS})
    alive: Mapping[str, int] = field(default_factory=lambda: {"vae weights float16": GIB})
    attention: str = "Attention"


side = Side


def record(name: str, of: Side) -> ScenarioRecord:
    operations = {f"aten::mm in {of.attention}": 1000, **of.more}
    totals = dict.fromkeys(TOTALS, 0) | {BYTES_MOVED: of.moved_bytes, FLOPS: of.flops}
    a_step = counted(
        operations={f"aten::mm in {of.attention}": 300}
        | {name: count for name, count in of.steps.items() if " in " in name},
        waits={name: count for name, count in of.steps.items() if "(item)" in name},
        copies={name: count for name, count in of.steps.items() if "(to the" in name},
    )
    counts = counted(
        totals,
        operations,
        a_step=a_step.tally,
        waits=of.places,
        copies=of.copies,
        copied_bytes={place: number * of.copied for place, number in of.copies.items()},
        components=of.calls,
    )
    peak_bytes = sum(of.alive.values())
    return scenario_record(
        name,
        workload="sd15",
        counts=counts.beside(of.work),
        component_peak_bytes={WHOLE: peak_bytes, "vae": peak_bytes},
        at_peak=AtPeak("vae", of.alive),
        work=WORK,
    )


def compared(*sides: tuple[str, Side, Side], limits: Limits | None = None) -> Compared:
    """A comparison of these scenarios: the technique, base and head of each."""
    limits = limits or Limits(steps=STEPS)
    bases = [record(name, base) for name, base, _ in sides]
    heads = [record(name, head) for name, _, head in sides]
    verdicts: list[Verdict] = []
    for base, head in zip(bases, heads, strict=True):
        case = SideCase(base.id, None, {}, base=base, limits=limits, memory_source="replay")
        verdicts += verdicts_on(head, case, METRICS)
    return Compared(run_record(*bases), run_record(*heads), verdicts)


def findings_in(*sides: tuple[str, Side, Side]) -> list[Finding]:
    return findings_of(compared(*sides))


def lines_of(findings: Sequence[Finding]) -> list[str]:
    """Of each finding its verdict, the cause where one is known, and what that moved."""
    return [
        ": ".join(filter(None, (finding.says, finding.cause, finding.moved)))
        for finding in findings
    ]


def peaks(base: ScenarioRecord, head: ScenarioRecord) -> list[Finding]:
    """What is found in the peaks alone."""
    verdicts = verdicts_on(head, SideCase(base.id, None, {}, base=base), ("peak_memory",))
    return findings_of(Compared(run_record(base), run_record(head), verdicts))


def walked(a_step: int, once: int, function: str = WALK) -> Counts:
    """The host's work with so many calls of a function in each step, and so many besides."""
    return with_functions(host_calls(), {WALK: a_step}, {function: once})


def causes(base: Side, head: Side) -> list[str]:
    """What a scenario differs by, or what moved where no cause is known."""
    return [finding.title for finding in findings_in(("fp32", base, head))]


CLONES = {"aten::clone in ResnetBlock2D": 60}


def test_equal_sides_have_no_finding() -> None:
    assert findings_in(("fp32", side(), side()), ("bf16", side(CLONE), side(CLONE))) == []


def test_a_wait_names_its_place_and_a_renamed_one_is_none() -> None:
    waits = side(places={PLACE: STEPS}, steps={PLACE: 1})
    assert lines_of(findings_in(("fp32", side(), waits))) == [
        f"regression: {PLACE} +3 (+1 a step): synchronisations from zero"
    ]
    renamed = {PLACE.replace("step", "_step"): STEPS}
    assert causes(side(places={PLACE: STEPS}), side(places=renamed)) == []


def test_more_of_the_host_s_work_names_functions_in_the_steps_and_outside_of_them() -> None:
    before = side(work=walked(40, 40))
    for now, said in (
        (walked(140, 40), f"{WALK} +100 a step: host calls (a step) +15.6 %"),
        (walked(40, 640), f"{WALK} +600 outside of the steps: host calls (in all) +26.5 %"),
    ):
        assert lines_of(findings_in(("fp32", before, side(work=now)))) == [f"regression: {said}"]
    both = side(work=walked(20, 1700, "b.py:set_up"))
    assert lines_of(findings_in(("fp32", side(), both))) == [
        "regression: b.py:set_up +1,700 outside of the steps: host calls (in all) +83.8 %",
        f"within limits: {WALK} +20 a step: host calls (a step) +3.3 %",
    ]


def test_what_is_too_small_fails_where_figures_are_exact() -> None:
    sides = ("fp32", side(), side(CLONE, 1002))
    assert not compared(sides).failed
    exact = compared(sides, limits=Limits(exact=True, steps=STEPS))
    assert findings_of(exact)[0].outcome is Outcome.REGRESSION


def test_one_cause_in_many_scenarios_is_one_finding() -> None:
    names = ("fp32", "fp16", "bf16", "sdpa", "autocast")
    twice = {"aten::clone in ResnetBlock2D": 2}
    [finding] = findings_in(
        *((name, side(), side(CLONE, 1020 + 10 * n, steps=twice)) for n, name in enumerate(names))
    )
    assert finding.outcome is Outcome.REGRESSION
    assert finding.cause == "clone +6 (+2 a step) in ResnetBlock2D"
    assert finding.moved == "bytes moved +2.0 % to +6.0 %, operations +0.6 %"
    assert finding.scenarios == tuple(f"sd15-{name}" for name in names)
    assert finding.where == "sd15-fp32, sd15-fp16, sd15-bf16 and 2 more"


def test_functions_that_change_elsewhere_without_a_figure_are_no_part_of_a_finding() -> None:
    [finding] = findings_in(
        ("fp32", side(work=walked(40, 40)), side(work=walked(140, 40))),
        ("bf16", side(work=walked(40, 600, "b.py:x")), side(work=walked(40, 600))),
    )
    assert (finding.cause, finding.scenarios) == (f"{WALK} +100 a step", ("sd15-fp32",))


def test_what_failed_on_a_side_is_no_part_of_the_other_s_cause() -> None:
    two = {WALK: 30, "diffusers/b.py:hook": 20}
    result = compared(
        ("fp32", side(work=host_calls()), side(work=with_functions(host_calls(), two))),
        ("bf16", side(work=with_functions(host_calls(), {WALK: 5})), side(work=Counts())),
    )
    failed = not_run("sd15-bf16", head=failure(Outcome.BROKEN, "it does not work"))
    ran = [verdict for verdict in result.verdicts if verdict.scenario == "sd15-fp32"]
    findings = findings_of(replace(result, verdicts=[*ran, failed]))
    assert [finding.cause for finding in findings if finding.cause] == [
        f"{WALK} +30 a step, diffusers/b.py:hook +20 a step"
    ]


def test_latencies_are_told_together_and_what_does_not_run_by_its_reason() -> None:
    base = compared(("fp32", side(), side()), ("bf16", side(), side()), ("sdpa", side(), side()))
    slower = [
        verdict(f"sd15-{name}", Outcome.REGRESSION, "latency", measured=now, baseline=100.0)
        for name, now in (("fp32", 105.0), ("bf16", 110.0))
    ]
    crash = not_run("sd15-sdpa", head=failure(Outcome.BROKEN, "it does not work"))
    broken, latency = findings_of(replace(base, verdicts=[*slower, crash]))
    assert broken.title == "runs on base, and on head: it does not work"
    untimed = not_run("sd15-sdpa", head=failure(Outcome.BROKEN, "it hangs"), metric=LATENCY)
    [failed] = findings_of(replace(base, verdicts=[untimed]))
    assert failed.title == "latency: runs on base, and on head: it hangs"
    assert (latency.cause, latency.moved) == ("", "latency +5.0 % to +10.0 %")
    assert latency.scenarios == ("sd15-fp32", "sd15-bf16")


def test_what_fails_comes_first_and_every_figure_is_in_a_finding() -> None:
    less = {"aten::clone in ResnetBlock2D": 60}
    result = compared(
        ("sdpa", side(), side({"aten::view in Attention": 2})),
        ("fp32", side(less), side()),
        ("bf16", side(), side({"aten::bmm in Attention": 300})),
    )
    outcomes = [finding.outcome for finding in findings_of(result)]
    assert outcomes == [Outcome.REGRESSION, Outcome.IMPROVEMENT, Outcome.PASS]
    assert closing_line(result) == (
        "3 findings: 1 failed, 1 improved, 0 inconclusive, 1 within limits; "
        "3 scenarios compared, 0 not"
    )


def test_the_screen_shows_ten_findings() -> None:
    sides = [
        (f"t{n}", side(), side({f"aten::view in Module{n}": 100 + n}))
        for n in range(MAX_FINDINGS + 2)
    ]
    result = compared(*sides)
    text = render(result, ("a", "b"), color=False)
    assert " 1. regression: view +111 in Module11" in text
    assert f"{MAX_FINDINGS}. regression" in text
    assert f"{MAX_FINDINGS + 1}. " not in text
    assert "and 2 more; --perf-report shows all" in text
    assert "base" not in text.split("not compared")[0].split("changed from base to head")[-1]


def test_a_leak_is_a_finding_of_its_own_whatever_operations_came_with_it() -> None:
    result = compared(("fp32", side(), side(CLONE)))
    [base], [head] = result.base.scenarios.values(), result.head.scenarios.values()
    leaking = replace(head, faults={"leak": "a call left 2.00 MiB allocated"})
    leaks = verdicts_on(leaking, SideCase(base.id, None, {}, base=base), ("faults",))
    findings = findings_of(replace(result, verdicts=[*result.verdicts, *leaks]))
    assert findings[0].outcome is Outcome.BROKEN
    assert findings[0].title == "faults (leak): a call left 2.00 MiB allocated"
    assert len(findings) == 2


# A figure is put down to what it comes from, and to nothing else


def test_values_are_no_operation_s_doing_and_rounding_is_told() -> None:
    result = compared(("fp32", side(), side(CLONE)))
    beside = "; nothing that was counted explains it"
    text = "values differ by 1 std in step 1"
    differs = Verdict("sd15-fp32", VALUES.name, Outcome.REGRESSION, text)
    [finding] = findings_of(replace(result, verdicts=[differs]))
    assert (finding.cause, finding.moved) == ("", f"computed {text}{beside}")
    for share, said in ((1e-5, beside), (0.0, "")):
        told = replace(
            differs, outcome=Outcome.PASS, measured=share, baseline=0.0, text="so", detail="so"
        )
        [finding] = findings_of(replace(result, verdicts=[told]))
        assert (finding.cause, finding.moved) == ("", f"computed so{said}")


def test_an_image_is_told_with_its_limit_and_unexplained_figures_by_scenario() -> None:
    result = compared(("fp32", side(), side(flops=150_000)), ("bf16", side(), side(flops=50_000)))
    text = "SSIM of head's image with base's is 0.9593 (limit 0.9900)"
    image = Verdict("sd15-fp32", "SSIM", Outcome.REGRESSION, text, 0.9593, 1.0, 0.99)
    beside = "nothing that was counted explains it"
    findings = findings_of(replace(result, verdicts=[*result.verdicts, image]))
    assert [(finding.moved, finding.scenarios) for finding in findings] == [
        (f"flops +50.0 %; {beside}", ("sd15-fp32",)),
        (f"{text}; {beside}", ("sd15-fp32",)),
        (f"flops -50.0 %; {beside}", ("sd15-bf16",)),
    ]


def test_what_comes_once_a_call_is_no_share_of_the_steps() -> None:
    """60 casts of one decoding, as many as 3 x 20, are no 20 casts a step."""
    casts = {"aten::_to_copy in RMSNorm": 60}
    assert causes(side(), side(casts)) == ["_to_copy +60 in RMSNorm"]
    mixed = side(casts, steps={"aten::_to_copy in RMSNorm": 4})
    assert causes(side(), mixed) == ["_to_copy +60 (+4 a step) in RMSNorm"]


def test_gains_and_losses_are_never_in_one_finding() -> None:
    base = side({"aten::_to_copy in Attention": 300}, 5000)
    head = side({"aten::clone in ResnetBlock2D": 50}, 4000)
    assert lines_of(findings_in(("fp32", base, head))) == [
        "regression: clone +50 in ResnetBlock2D: operations -19.2 % in all",
        "improvement: _to_copy -300 in Attention: bytes moved -20.0 %",
    ]


def test_bytes_copied_go_under_the_place_that_copies_them() -> None:
    """And neither under a module's casts, nor under a place that copies less."""
    head = side({"aten::_to_copy in Attention": 600}, copies={ROPE: 30}, steps={ROPE: 10})
    assert lines_of(findings_in(("fp32", side(copies={PROMPT: 4}), head))) == [
        "regression: copy to the device +30 (+10 a step), +0.03 MiB, at "
        "diffusers/models/rope.py:forward: "
        "copies to the device +650.0 %, bytes copied to the device +650.0 %",
        "regression: _to_copy +600 in Attention: operations +60.0 %",
    ]


def test_copies_and_their_bytes_have_a_cause_each_where_they_go_apart() -> None:
    large = side(copies={PROMPT: 4}, copied=2**20)
    larger = f"bytes copied to the device +4.00 MiB {AT_PROMPT}"
    assert causes(side(copies={PROMPT: 4}), large) == [larger]
    assert causes(side(), large) == [f"copy to the device +4, +4.00 MiB, {AT_PROMPT}"]
    assert causes(large, side(copies={PROMPT: 32}, copied=2**16)) == [
        f"copy to the device +28 {AT_PROMPT}",
        f"bytes copied to the device -2.00 MiB {AT_PROMPT}",
    ]


def test_flops_are_no_clone_s() -> None:
    assert lines_of(findings_in(("fp32", side(), side(CLONES, flops=150_000)))) == [
        "regression: flops +50.0 %; nothing that was counted explains it",
        "regression: clone +60 in ResnetBlock2D: operations +6.0 %",
    ]


def test_a_peak_is_told_by_what_is_alive_then_and_by_the_operations_of_that_module() -> None:
    alive = {"vae weights float16": GIB, "vae made float16 in Conv": GIB // 4}
    made = "alive at the peak: vae made float16 +256.00 MiB in Conv"
    assert lines_of(findings_in(("fp32", side(), side(alive=alive)))) == [
        f"regression: {made}: "
        "peak memory +256.00 MiB (+25.0 %), peak memory (vae) +256.00 MiB (+25.0 %)"
    ]
    clones = {"aten::clone in Conv": 60, "aten::_to_copy in Attention": 600}
    assert causes(side(), side(clones, alive=alive)) == [
        "_to_copy +600 in Attention, clone +60 in Conv",
        f"{made} (clone +60 there)",
    ]
    weights = side(CLONES, alive={"x weights": 2 * GIB})
    assert "alive at the peak: x weights +2.00 GiB" in causes(side(), weights), "made by none"


def test_other_calls_of_a_component_fail_with_the_work_that_they_are() -> None:
    """Fewer, as where guidance is silently off, and as many samples in more; memory is a gain."""
    base = side(alive={"denoiser made float16 in Attention": 2 * GIB})
    less, more = ({"aten::mm in Attention": number} for number in (500, 1500))
    alone = {"denoiser (batch of 1)": STEPS}
    [fewer] = findings_in(("fp32", side(), side(less, 500, flops=50_000, calls=alone)))
    assert fewer.outcome is Outcome.REGRESSION
    assert fewer.cause == "calls of denoiser (batch of 1) +3, calls of denoiser (batch of 2) -3"
    assert "flops -50.0 %" in fewer.moved
    alone, alive = {"denoiser (batch of 1)": 6}, {"denoiser made float16 in Attention": GIB}
    calls, memory = findings_in(("fp32", base, side(more, calls=alone, alive=alive)))
    assert calls.cause == "calls of denoiser (batch of 1) +6, calls of denoiser (batch of 2) -3"
    assert "operations +50.0 %" in calls.moved
    assert memory.outcome is Outcome.IMPROVEMENT


def test_what_computes_in_another_dtype_is_no_clone_s_and_no_gain() -> None:
    def computing(more: Mapping[str, int], **dtypes: int) -> Side:
        return side(more, work=host_calls().beside(counted(compute=dtypes)))

    before = computing({}, float16=1000)
    clones = computing(CLONES, float16=900, float32=100)
    beside = "nothing that was counted explains it"
    assert lines_of(findings_in(("fp32", before, clones))) == [
        f"regression: compute (float32) from zero; {beside}",
        "regression: clone +60 in ResnetBlock2D: operations +6.0 %",
        f"within limits: compute (float16) -10.0 %; {beside}",
    ]
    products = computing({"aten::mm in Attention": 1060}, float16=1000, float32=60)
    assert lines_of(findings_in(("fp32", before, products))) == [
        "regression: mm +60 in Attention: operations +6.0 %, compute (float32) from zero"
    ]


def test_weights_are_part_of_every_peak_and_one_finding() -> None:
    untied = {"vae weights float16": 2 * GIB}
    sizes = {WHOLE: 9 * GIB, "denoiser": 8 * GIB, "vae": 9 * GIB}
    base, head = (
        replace(
            record("fp32", of), component_peak_bytes={name: n + more for name, n in sizes.items()}
        )
        for of, more in ((side(), 0), (side(alive=untied), GIB))
    )
    [finding] = peaks(base, head)
    assert finding.cause == "alive at the peak: vae weights float16 +1.00 GiB"
    assert finding.moved.count("+1.00 GiB") == 3


def test_what_is_alive_in_another_phase_is_no_cause_of_a_component_s_peak() -> None:
    """Base peaks in its VAE, head in its denoiser, whose own peak hardly changed."""
    base, head = (
        replace(
            record("fp32", side()),
            component_peak_bytes={WHOLE: peak, "denoiser": denoiser, "vae": vae},
            at_peak=AtPeak(phase, {holder: peak}),
        )
        for peak, denoiser, vae, phase, holder in (
            (9 * GIB, 7 * GIB, 9 * GIB, "vae", "vae made float16 in Decoder"),
            (8 * GIB, 8 * GIB, 5 * GIB, "denoiser", "denoiser made float16 in Attention"),
        )
    )
    causes = {finding.moved.partition(";")[0]: finding.cause for finding in peaks(base, head)}
    assert causes == {
        "peak memory (denoiser) +1.00 GiB (+14.3 %)": "",
        "peak memory (vae) -4.00 GiB (-44.4 %)": "",
        "peak memory -1.00 GiB (-11.1 %)": (
            "alive at the peak: vae made float16 -9.00 GiB in Decoder"
        ),
    }


def test_a_component_s_peak_is_put_down_to_what_a_module_made_that_works_otherwise_now() -> None:
    """Head peaks in its VAE, since its attention no longer makes what base's peak was made of."""
    scores, rest = "denoiser made bfloat16 in Attention", "denoiser made bfloat16 in FeedForward"
    math = side({"aten::_safe_softmax in Attention": 224})
    fused = side({"aten::_scaled_dot_product_efficient_attention in Attention": 224})
    base, head = (
        replace(record("fp32", of), component_peak_bytes=peaks_, at_peak=AtPeak(phase, alive))
        for of, peaks_, phase, alive in (
            (
                math,
                {WHOLE: 20 * GIB, "denoiser": 20 * GIB},
                "denoiser",
                {scores: 9 * GIB, rest: GIB},
            ),
            (fused, {WHOLE: 12 * GIB, "denoiser": 11 * GIB}, "vae", {"vae made in Decoder": GIB}),
        )
    )
    [finding] = peaks(base, head)
    assert finding.outcome is Outcome.IMPROVEMENT
    assert f"alive at the peak: {scores.replace(' in', ' -9.00 GiB in')}" in finding.cause
    assert "peak memory -8.00 GiB (-40.0 %)" in finding.moved
    assert "peak memory (denoiser) -9.00 GiB (-45.0 %)" in finding.moved


def test_calls_of_each_component_are_a_cause_of_their_own() -> None:
    """Though one scenario shows two of them; and a scheduler computes nothing."""
    calls = {"denoiser (batch of 2)": 3, "text_encoder (batch of 1)": 2}
    once = {**calls, "text_encoder (batch of 1)": 1}
    both = {**once, "denoiser (batch of 2)": 4}
    findings = findings_in(
        ("fp32", side(calls=calls), side(calls=both)), ("bf16", side(calls=calls), side(calls=once))
    )
    assert {finding.cause: finding.moved for finding in findings} == {
        "calls of denoiser (batch of 2) +1": "component calls (denoiser (batch of 2)) +33.3 %",
        "calls of text_encoder (batch of 1) -1": (
            "component calls (text_encoder (batch of 1)) -50.0 %"
        ),
    }
    twice = {**calls, "scheduler (batch of 1)": 6}
    scheduled = side({"aten::bmm in Attention": 60}, calls=twice)
    assert causes(side(calls=calls), scheduled) == [
        "calls of scheduler (batch of 1) +6",
        "bmm +60 in Attention",
    ]


def test_what_moves_most_comes_first_and_not_what_is_called_most() -> None:
    head = side({"aten::zeros_like in Attention": 40, "aten::_to_copy in Attention": 30})
    assert causes(side(), head) == ["_to_copy +30 in Attention, zeros_like +40 in Attention"]


def test_a_class_that_was_renamed_is_no_change() -> None:
    base, head = (
        side(
            {f"aten::{name} in {owner}": 100 for name in ("mul", "cat", "add")},
            alive={f"denoiser made float16 in {owner}": GIB},
        )
        for owner in ("Rope", "FluxRope")
    )
    more = replace(head, more={**head.more, "aten::clone in FluxRope": 60})
    grown = replace(head, alive={name: 2 * size for name, size in head.alive.items()})
    memory = "alive at the peak: denoiser made float16 +1.00 GiB in FluxRope"
    assert causes(base, head) == []
    assert causes(base, more) == ["clone +60 in FluxRope"]
    assert causes(base, grown) == [memory]
    without, named = side({"aten::mul": 100}), side({"aten::mul in FluxRope": 60})
    assert causes(without, named) == ["mul -100"], "what no module calls has no class"
    other = side({"aten::bmm in Sampler": 300})
    assert causes(base, other) == ["bmm +300 in Sampler"], "no name for another thing"


def test_both_sides_reasons_are_told_and_only_head_s_own_failure_fails() -> None:
    raised = failure(Outcome.BROKEN, "raised RuntimeError: dtypes (first call, a.py:12)")
    moved = failure(Outcome.BROKEN, "raised RuntimeError: dtypes (first call, a.py:15)")
    inactive = failure(Outcome.NOT_ACTIVE, "not in effect: the VAE is in fp32")
    absent = failure(Outcome.UNSUPPORTED, "needs diffusers 0.33")
    both = f"on base: {raised.text}; on head: {moved.text}"
    for base, head, outcome, text in (
        (raised, moved, Outcome.UNSUPPORTED, f"not compared: {both}"),
        (raised, raised, Outcome.UNSUPPORTED, f"not compared: on both sides: {raised.text}"),
        (raised, inactive, Outcome.NOT_ACTIVE, f"on base: {raised.text}; on head: {inactive.text}"),
        (absent, raised, Outcome.BROKEN, f"on base: {absent.text}; on head: {raised.text}"),
        (raised, absent, Outcome.UNSUPPORTED, None),
    ):
        verdict_ = not_run("sd15-fp16", base, head)
        assert (verdict_.outcome, verdict_.not_run) == (outcome, "both")
        assert text in (None, verdict_.text)
