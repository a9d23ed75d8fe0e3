"""Loading: counts by their thresholds, times by every pair of processes, a failure by its side."""

from __future__ import annotations

import pytest

from fixtures.commands.compare.command_line import counting
from fixtures.commands.compare.comparing import METRICS
from fixtures.metrics import option_of
from fixtures.metrics.load import COUNTED, METRIC, TIMED, quantity_of
from fixtures.records.load import CPU, FILES, IMPORT_CPU, IMPORT_MODULES, PEAK, RESIDENT, Load
from fixtures.records.outcome import Outcome
from fixtures.records.units import MIB
from fixtures.settings import Settings
from fixtures.verdicts.limits import Limits
from tests.support.loads import record, sides

PEAK_FP16 = f"{PEAK} (fp16)"


def counts(name: str, before: int, now: int, limits: Limits | None = None) -> Outcome | None:
    base, head = (Load({name: {"a": count}}, {}) for count in (before, now))
    figures = METRIC.compare(sides(base, head, limits))
    return figures[0].verdict.outcome if figures else None


@pytest.mark.parametrize(
    ("name", "before", "limit"),
    [
        (IMPORT_MODULES, 2000, 40),
        (IMPORT_MODULES, 100, 10),
        (f"{FILES} (fp32)", 12, 2),
        (PEAK_FP16, 12 * MIB, 12 * MIB // 50),
        (PEAK_FP16, 300 * MIB, 4 * MIB),
        (PEAK_FP16, 1000 * MIB, 10 * MIB),
    ],
)
def test_a_count_fails_and_improves_beyond_its_threshold(
    name: str, before: int, limit: int
) -> None:
    assert counts(name, before, before) is None
    assert counts(name, before, before + limit) is Outcome.PASS
    assert counts(name, before, before + limit + 1) is Outcome.REGRESSION
    assert counts(name, before, before - limit) is Outcome.PASS
    assert counts(name, before, before - limit - 1) is Outcome.IMPROVEMENT
    assert counts(name, before, before + 1, Limits(exact=True)) is Outcome.REGRESSION
    assert counts(name, before, before + limit + 1, Limits(allowed=0.5)) is Outcome.PASS


def test_a_note_names_the_packages_or_what_a_byte_of_weights_takes() -> None:
    before = Load({IMPORT_MODULES: {"diffusers": 280, "rich": 55, "torch": 400}}, {}, MIB)
    now = Load({IMPORT_MODULES: {"diffusers": 340, "scipy": 5, "torch": 400}}, {}, MIB)
    (modules,) = METRIC.compare(sides(before, now))
    assert modules.note == "diffusers +60, rich -55, scipy +5"
    before, now = (Load({PEAK_FP16: {"tensors": times * MIB}}, {}, 2 * MIB) for times in (2, 5))
    (peak,) = METRIC.compare(sides(before, now))
    assert peak.note == "1.00 -> 2.50 times the files of weights"
    assert peak.verdict.sentence == (
        "storybook-fp32: loading: host peak (fp16) 2.00 MiB -> 5.00 MiB: "
        "1.00 -> 2.50 times the files of weights"
    )
    (figure,) = METRIC.figures(record(before)).values()
    assert figure[1] == 2 * MIB


@pytest.mark.parametrize(
    ("base", "head", "outcome"),
    [
        ((4.0, 4.1, 4.2), (4.9, 5.1, 5.2), Outcome.PASS),
        ((4.0, 4.1, 4.2), (5.1, 5.2, 5.3), Outcome.REGRESSION),
        ((4.0, 4.1, 4.2), (4.4, 9.0, 9.0), Outcome.INCONCLUSIVE),
        ((4.0, 4.1, 4.2), (2.9, 2.9, 2.9), Outcome.IMPROVEMENT),
        ((4.0, 4.1, 4.2), (2.9, 4.1, 9.0), Outcome.INCONCLUSIVE),
        ((0.1, 0.1, 0.1), (0.39, 0.39, 0.39), Outcome.PASS),
        ((0.1, 0.1, 0.1), (0.41, 0.41, 0.41), Outcome.REGRESSION),
    ],
)
def test_a_time_fails_where_every_pair_of_processes_is_apart(
    base: tuple[float, ...], head: tuple[float, ...], outcome: Outcome
) -> None:
    (figure,) = METRIC.compare(sides(Load({}, {IMPORT_CPU: base}), Load({}, {IMPORT_CPU: head})))
    assert figure.verdict.outcome is outcome
    assert (figure.base, figure.head) == (sorted(base)[1], sorted(head)[1])


def test_a_time_that_differs_by_less_than_is_printed_is_no_difference() -> None:
    base, head = (Load({}, {IMPORT_CPU: (one,), CPU: (0.0914,)}) for one in (4.20012, 4.20041))
    assert not any(figure.is_shown for figure in METRIC.compare(sides(base, head)))


def test_what_loads_on_base_alone_fails_and_on_head_alone_is_not_compared() -> None:
    works, fails = Load({}, {}), "loading raised ImportError: no"
    (figure,) = METRIC.compare(sides(works, fails))
    assert figure.verdict.outcome is Outcome.BROKEN
    assert figure.verdict.sentence == (
        "storybook-fp32: load: works on base, and on head: loading raised ImportError: no"
    )
    pairs: list[tuple[Load | str, Load | str, str]] = [
        (fails, works, "base"),
        (fails, fails, "both sides"),
    ]
    for base, head, where in pairs:
        (figure,) = METRIC.compare(sides(base, head))
        assert figure.verdict.outcome is Outcome.UNSUPPORTED
        assert figure.note == f"load not compared: on {where}: loading raised ImportError: no"
    assert METRIC.compare(sides("", "")) == []


def test_it_is_measured_on_request_and_its_figures_print_their_units() -> None:
    assert "load" not in METRICS
    assert counting(Settings(), ["load"]) == Settings(load=True)
    assert {option_of(f"{name} (fp16)") for name in (*COUNTED, *TIMED)} == {"load"}
    texts = [
        quantity_of(name).format(value)
        for name, value in ((CPU, 0.091), (f"{RESIDENT} (fp16)", 3 * MIB), (FILES, 1200))
    ]
    assert texts == ["91 ms", "3.00 MiB", "1,200"]
