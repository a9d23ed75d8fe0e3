"""How long a report takes, and how large it is: `python -m tests.benchmarks.report [RESULTS]`.

Without a file it is of a run of 1,000 made-up scenarios; with one it is of that run. Printed are
the seconds to write the page, its size, and the seconds until headless Chromium has it open and
has answered a filter.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from fixtures.records.outcome import Outcome
from fixtures.records.run import RESULTS, RunRecord
from fixtures.records.timing import Interval
from fixtures.report.page import page
from tests.support.browser import chromium
from tests.support.runs import MIB, run_record, scenario_record, timing

SCENARIOS = 1000


def large_run(scenarios: int = SCENARIOS) -> RunRecord:
    """A run of so many scenarios with rounds, ratios and verdicts, over ten workloads."""
    return run_record(
        *(
            scenario_record(
                f"technique{number // 10}",
                Outcome.REGRESSION if number % 50 == 0 else Outcome.PASS,
                workload=f"workload{number % 10}",
                family=f"family{number % 7}",
                wall_ms=100.0 + number,
                speedup=Interval(1.0 + number / 1000, 0.9, 1.2),
                peak_bytes=(number + 1) * MIB,
                reference_peak_bytes=2**30,
                ssim=0.99,
                timings=[timing(ratio, pairs=15) for ratio in (1.0, 1.01)],
                baseline_ratios=[0.99, 1.0, 1.01],
            )
            for number in range(scenarios)
        )
    )


def main() -> None:
    """Measure, and print."""
    run = RESULTS.read(Path(sys.argv[1])) if len(sys.argv) > 1 else large_run()
    start_s = time.perf_counter()
    html = page(run, strict=False)
    wrote_s = time.perf_counter() - start_s
    print(f"{len(run.scenarios)} scenarios: {len(html) / 1e6:.1f} MB, written in {wrote_s:.1f} s")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        file = Path(folder, "report.html")
        file.write_text(html, encoding="utf-8")
        tab = browser.new_page()
        start_s = time.perf_counter()
        tab.goto(file.as_uri())
        opened_s = time.perf_counter() - start_s
        start_s = time.perf_counter()
        tab.get_by_label("Find").fill("technique7")
        tab.locator("#shown").inner_text()
        print(f"open in {opened_s:.2f} s, filtered in {time.perf_counter() - start_s:.2f} s")


if __name__ == "__main__":
    main()
