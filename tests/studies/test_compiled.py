"""The table of compiled code: what a row says, and that the page shows what is stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fixtures.records.baseline_store import BaselineStore
from fixtures.records.compilation import (
    BREAKS,
    CAPTURED,
    GRAPHS,
    RECOMPILATIONS,
    Compilation,
    of_call,
)
from fixtures.settings import REPOSITORY
from fixtures.studies.compiled import table
from tests.support.runs import SOFTWARE, entry

PAGE = REPOSITORY / "docs" / "compilation.md"


def test_a_row_has_what_is_compiled_anew_and_what_breaks(tmp_path: Path) -> None:
    counts = {
        GRAPHS: 3,
        CAPTURED: 1730,
        of_call(RECOMPILATIONS, "again"): 1,
        of_call(RECOMPILATIONS, "wider"): 2,
        of_call(BREAKS, "wider"): 1,
    }
    compilation = Compilation(counts, {}, 43.06, (280.0,), SOFTWARE)
    store = BaselineStore(tmp_path)
    store.stage("cpu", "ltx2-twin", "torch_compile", replace(entry(), compilation=compilation))
    store.stage("cpu", "ltx2-twin", "fp32", entry())
    store.commit()
    _, _, *rows = table(tmp_path)
    assert rows == [
        "| `ltx2-twin-torch_compile` | 3 | 1,730 | 0 | 0 | 0 | 0, 0 | - | - | 2, breaks 1 | - | - "
        "| 43.1 s (anew: again) |"
    ]


def test_the_page_shows_what_is_stored() -> None:
    rows = table()
    assert len(rows) > 2
    assert "\n".join(rows) in PAGE.read_text("utf-8")
