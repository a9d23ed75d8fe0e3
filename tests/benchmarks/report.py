"""How long a report takes, and how large it is: `python -m tests.benchmark_report [RESULTS]`.

Without a file it is of a run of 1,000 made-up scenarios; with one it is of that run. Printed are
the seconds to write the page, its size, and the seconds until headless Chromium has it open and
has answered a filter.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from fixtures.report.page import page
from fixtures.report.reading import read_results
from fixtures.report.record import RunRecord, ScenarioRecord
from fixtures.statistics import Interval
from fixtures.verdicts import Outcome, Verdict
from tests.browser import chromium

SCENARIOS = 1000


def large_run(scenarios: int = SCENARIOS) -> RunRecord:
    """A run of so many scenarios with rounds, ratios and verdicts, over ten workloads."""
    run = RunRecord(device_key="cpu", software={"torch": "2.13.0"})
    for number in range(scenarios):
        workload, name = f"workload{number % 10}", f"technique{number // 10}"
        record = ScenarioRecord(f"{workload}-{name}", workload, name, f"family{number % 7}")
        record.latency_ms = 100.0 + number
        record.speedup = Interval(1.0 + number / 1000, 0.9, 1.2)
        record.peak_bytes, record.reference_peak_bytes = (number + 1) * 2**20, 2**30
        record.ssim = 0.99
        record.ratios, record.baseline_ratios = [1.0, 1.01], [0.99, 1.0, 1.01]
        record.rounds_ms = [[[100.0, 101.0, 99.0, 100.5, 100.0]] * 12]
        outcome = Outcome.REGRESSION if number % 50 == 0 else Outcome.PASS
        record.verdicts = [Verdict(record.id, "latency ratio", outcome, f"{record.id} says why")]
        run.scenarios[record.id] = record
    return run


def main() -> None:
    """Measure, and print."""
    run = read_results(Path(sys.argv[1])) if len(sys.argv) > 1 else large_run()
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
