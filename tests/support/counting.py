"""Tables of counts that nobody counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from fixtures.records.counts import (
    BYTES_TO_DEVICE,
    BYTES_TO_HOST,
    COMPONENT_CALLS,
    COMPUTE,
    COPIES_TO_DEVICE,
    COPIES_TO_HOST,
    HOST_CALLS,
    OPERATIONS,
    STANDARD_CALLS,
    SYNCS,
    TORCH_CALLS,
    Counts,
    Row,
)

NONE: Mapping[str, int] = {}


def counts(**operations: int) -> Counts:
    """So many calls of each ATen operation."""
    return counted(operations={f"aten::{name}": count for name, count in operations.items()})


def counted(
    totals: Mapping[str, int] = NONE,
    operations: Mapping[str, int] = NONE,
    *,
    a_step: Mapping[Row, int] | None = None,
    compute: Mapping[str, int] = NONE,
    waits: Mapping[str, int] = NONE,
    copies: Mapping[str, int] = NONE,
    copied_bytes: Mapping[str, int] = NONE,
    components: Mapping[str, int] = NONE,
) -> Counts:
    """Counts of a device.

    `operations` may name a module, as `aten::mm in Linear`; `waits` are by place and what waits, as
    `a.py:f (item)`; `copies` and their bytes by place and way, as `a.py:f (to the host)`. A total
    says what is beside those, or stands alone.
    """
    rows: Counter[Row] = Counter()
    for named, count in operations.items():
        operation, _, module = named.partition(" in ")
        rows[Row(OPERATIONS, operation, module)] = count
    for kind, names in ((COMPUTE, compute), (COMPONENT_CALLS, components)):
        rows.update({Row(kind, name): count for name, count in names.items()})
    for where, count in waits.items():
        place, _, why = where.rpartition(" (")
        rows[Row(SYNCS, why.removesuffix(")"), place)] = count
    for numbers, (to_device, to_host) in (
        (copies, (COPIES_TO_DEVICE, COPIES_TO_HOST)),
        (copied_bytes, (BYTES_TO_DEVICE, BYTES_TO_HOST)),
    ):
        for where, count in numbers.items():
            place, _, way = where.rpartition(" (to the ")
            rows[Row(to_device if way == "device)" else to_host, "", place)] = count
    kinds = {row.kind for row in rows}
    rows.update({Row(kind): count for kind, count in totals.items() if kind not in kinds})
    return Counts.of(rows, a_step)


FUNCTION, FILE = "Model.forward", "diffusers/model.py"
TORCH_FILE = "torch/nn/modules/module.py"


def host_calls(
    a_step: int = 600,
    *,
    torch_a_step: int = 5000,
    once: int = 300,
    steps: int = 3,
    standard: int = 0,
    runtime: Mapping[str, int] = NONE,
) -> Counts:
    """So many calls of diffusers and torch in each step, and of diffusers once besides.

    `standard` and the `runtime` are of each step.
    """
    step = {
        Row(HOST_CALLS, FUNCTION, FILE): a_step,
        Row(TORCH_CALLS, "Module.__call__", TORCH_FILE): torch_a_step,
        Row(STANDARD_CALLS, "diffusers"): standard,
        **{Row(kind): count for kind, count in runtime.items()},
    }
    once_rows = Counter({Row(HOST_CALLS, FUNCTION, FILE): once})
    in_all = once_rows + Counter({row: steps * count for row, count in step.items()})
    return Counts.of(in_all, step, host_steps=steps, python="3.11")


def with_functions(
    calls: Counts, step: Mapping[str, int], once: Mapping[str, int] | None = None
) -> Counts:
    """With calls of these functions in each step, and of those once besides."""

    def rows(functions: Mapping[str, int], times: int = 1) -> Counter[Row]:
        rows_: Counter[Row] = Counter()
        for function, count in functions.items():
            file, _, name = function.rpartition(":")
            kind = TORCH_CALLS if file.startswith("torch/") else HOST_CALLS
            rows_[Row(kind, name, file)] = times * count
        return rows_

    more = Counts.of(
        rows(step, calls.host_steps) + rows(once or {}),
        rows(step),
        host_steps=calls.host_steps,
        python=calls.python,
    )
    return calls.beside(more)


def operations_of(counts: Counts) -> dict[str, int]:
    """Operations by the kind of module that called them, as `aten::mm in Linear`."""
    return {
        f"{row.name} in {row.place}" if row.place else row.name: number.in_all
        for row, number in counts.rows.items()
        if row.kind == OPERATIONS and row.name
    }
