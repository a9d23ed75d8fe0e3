"""The registry: one module a metric, and every verdict belongs to one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures import metrics
from fixtures.metrics import BY_OPTION, METRICS, counts, metric_of, option_of
from fixtures.settings import REPOSITORY

HELPERS = {
    *("__init__", "metric", "exact", "causes", "counts", "latency_tolerances", "limits"),
    *("case", "quantity", "statistics", "likeness", "image_limits"),
}
"""Modules that are no metric: what they share."""


def test_every_module_is_one_metric_of_the_registry() -> None:
    folder = Path(metrics.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - HELPERS
    single = {getattr(metrics, name).METRIC.name for name in modules}
    assert single | {metric.name for metric in counts.METRICS} == {each.name for each in METRICS}
    assert len(modules) + len(counts.METRICS) == len(METRICS)


def test_names_options_and_quantities_are_each_one_metric_s() -> None:
    for names in (
        [metric.name for metric in METRICS],
        [metric.option for metric in METRICS if metric.option],
        [name for metric in METRICS for name in metric.quantities],
        [part for metric in METRICS for part in metric.parts],
        [column.title for metric in METRICS for column in metric.columns],
    ):
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("quantity", "metric", "option"),
    [
        ("latency ratio", "latency", "latency"),
        ("peak memory (vae)", "memory", "peak_memory"),
        ("FLIP maximum", "image", "images"),
        ("bytes moved", "counts", "bytes_moved"),
        ("compute (float16)", "counts", "counts"),
        ("host calls (a step)", "host calls", "host_calls"),
        ("empty_cache (in all)", "host calls", "empty_cache"),
        ("faults (leak)", "faults", "faults"),
        ("computed", "values", "values"),
        ("run", "activation", ""),
    ],
)
def test_a_verdict_belongs_to_a_metric_and_a_bisection_can_ask_for_it(
    quantity: str, metric: str, option: str
) -> None:
    assert metric_of(quantity).name == metric
    assert option_of(quantity) == option


def test_every_claim_of_a_metric_has_its_file() -> None:
    claims = {
        path.stem.removeprefix("test_") for path in (REPOSITORY / "perf_tests").glob("test_*.py")
    }
    named = {"counters": counts.COUNTS.name, "visual_equivalence": "image"}
    claimed = {named.get(claim, claim.replace("_", " ")) for claim in claims}
    for metric in METRICS:
        # Two sides alone can be judged by values.
        names = {metric.name, metric.option.replace("_", " ")}
        assert names & claimed or metric is metrics.values.METRIC, metric.name
    assert set(BY_OPTION) <= {each.option for each in METRICS}
