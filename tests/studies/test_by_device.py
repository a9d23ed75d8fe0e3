"""Techniques by device: which column a record belongs to, what a cell says, and the reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.records.outcome import Outcome, Verdict
from fixtures.records.run import RESULTS, RunRecord, ScenarioRecord
from fixtures.records.software import installation
from fixtures.studies.by_device import by_device_page, main


def record(
    workload: str,
    technique: str,
    *outcomes: Outcome,
    weights: str = "embedded",
    unsupported: str | None = None,
) -> ScenarioRecord:
    name = f"{workload}-{technique}"
    verdicts = [Verdict(name, "peak memory", one, "said") for one in outcomes]
    return ScenarioRecord(
        name, workload, technique, "family", weights=weights, unsupported=unsupported,
        verdicts=verdicts,
    )  # fmt: skip


def run(device: str, *records: ScenarioRecord) -> RunRecord:
    return RunRecord(device_key=device, scenarios={one.id: one for one in records})


ON_CPU = run(
    "cpu",
    record("storybook", "bf16", Outcome.PASS),
    record("storybook-dit", "bf16", Outcome.PASS, Outcome.NOT_JUDGED),
    record("storybook-256", "bf16", Outcome.PASS, Outcome.REGRESSION),
    record("storybook-new", "bf16", Outcome.INCONCLUSIVE),
    record("storybook", "tf32", unsupported="needs a CUDA device"),
    record("storybook", "sdpa", Outcome.NOT_JUDGED),
)
SIMULATED = run(
    "simulated",
    record("storybook", "bf16", Outcome.PASS),
    record("flux", "bf16", Outcome.IMPROVEMENT, weights="random"),
    record("sd15", "bf16", weights="random", unsupported="too | large"),
    record("sd15", "tf32", Outcome.PASS, weights="random"),
)


def rows(page: str) -> dict[str, list[str]]:
    lines = [line for line in page.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {row[0].strip("` "): [cell.strip() for cell in row[1:]] for row in cells}


def test_a_row_is_a_technique_and_a_column_a_kind_of_device() -> None:
    found = rows(by_device_page([ON_CPU, SIMULATED], ["bf16", "tf32", "sdpa", "unheard_of"]))
    assert found["techniques"] == ["CPU", "simulated, with images", "simulated, full size", "CUDA"]
    assert found["bf16"] == [
        "passed, **undecided: storybook-new**, **failed: storybook-256**",
        "passed",
        "passed",
        "not run",
    ]
    assert found["tf32"] == ["unsupported", "-", "passed", "not run"]
    assert found["sdpa"] == ["**not judged: storybook**", "-", "-", "not run"]
    assert found["unheard_of"] == ["-", "-", "-", "not run"]


def test_techniques_that_fared_alike_share_a_row() -> None:
    page = by_device_page([ON_CPU], ["tf32", "bf16", "sdpa", "unheard_of", "neither"])
    assert "\n| `unheard_of`, `neither` | - | not run | not run | not run |\n" in page


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_runs_on_a_workload_the_worst_counts(order: int) -> None:
    """A run that passes hides no failure, and one that could not apply it no verdict."""
    passed = run("cpu", record("storybook", "bf16", Outcome.PASS))
    failed = run("cpu", record("storybook", "bf16", Outcome.REGRESSION))
    lacking = run("cpu", record("storybook", "bf16", unsupported="needs a library"))

    def cell(*runs: RunRecord) -> str:
        page = by_device_page(runs[::order], ["bf16"])
        assert "needs a library" not in page
        return rows(page)["bf16"][0]

    assert cell(passed, failed, lacking) == "**failed: storybook**"
    assert cell(passed, lacking, passed) == "passed"
    assert cell(passed, lacking) == "passed"


def test_of_what_no_run_supports_the_last_run_says_why() -> None:
    lacking = run("cpu", record("storybook", "bf16", unsupported="needs a library"))
    having = run("cpu", record("storybook", "bf16", unsupported="no such kernel"))
    page = by_device_page([lacking, having], ["bf16"])
    assert "- CPU: `bf16`: no such kernel" in page
    assert "needs a library" not in page


def test_what_one_device_lacks_another_may_have() -> None:
    one = run("nvidia-h100", record("sd15", "bf16", unsupported="needs a card", weights="random"))
    two = run("nvidia-h200", record("sd15", "bf16", Outcome.PASS, weights="random"))
    assert rows(by_device_page([one, two], ["bf16"]))["bf16"][-1] == "passed"


def test_what_improved_fails_a_strict_page() -> None:
    found = rows(by_device_page([SIMULATED], ["bf16"], strict=True))
    assert found["bf16"][2] == "**failed: flux**"


def test_another_device_is_a_gpu() -> None:
    gpu = run("nvidia-h200", record("sd15", "bf16", Outcome.PASS, weights="random"))
    assert rows(by_device_page([gpu], ["bf16"]))["bf16"] == ["not run"] * 3 + ["passed"]


def test_reasons_are_of_what_runs_nowhere_on_a_device() -> None:
    page = by_device_page([ON_CPU, SIMULATED], ["bf16", "tf32"])
    assert "- CPU: `tf32`: needs a CUDA device" in page
    assert "large" not in page
    alone = run("simulated", SIMULATED.scenarios["sd15-bf16"])
    assert "- simulated, full size: `bf16`: too \\| large" in by_device_page([alone], ["bf16"])
    assert "Unsupported" not in by_device_page([run("cpu")], ["bf16"])


def test_the_command_of_the_environment_that_ran_is_left_out() -> None:
    reason = f"needs tomesd: {installation('tomesd')}"
    lacking = run("cpu", record("storybook", "token_merging", unsupported=reason))
    page = by_device_page([lacking], ["token_merging"])
    assert page.endswith("- CPU: `token_merging`: needs tomesd\n")


def test_the_runs_are_named_with_their_workloads() -> None:
    page = by_device_page([ON_CPU, run("cpu"), run("cpu", ON_CPU.scenarios["storybook-bf16"])], [])
    assert (
        "results of runs on cpu (storybook, storybook-dit, storybook-256, storybook-new)." in page
    )


def test_the_command_reads_results_and_writes_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, page = tmp_path / "results.json", tmp_path / "page.md"
    results.write_text(RESULTS.dump(ON_CPU), encoding="utf-8")
    assert main([str(results), "--output", str(page)]) == 0
    assert rows(page.read_text(encoding="utf-8"))["tf32"][0] == "unsupported"
    assert main([str(results)]) == 0
    assert capsys.readouterr().out == page.read_text(encoding="utf-8")
    results.write_text(RESULTS.dump(SIMULATED), encoding="utf-8")
    assert main([str(results), "--perf-strict"]) == 0
    assert rows(capsys.readouterr().out)["bf16"][2] == "**failed: flux**"


@pytest.mark.parametrize(
    ("content", "output", "sentence"),
    [
        ("{", "page.md", "by_device: "),
        (RESULTS.dump(ON_CPU), "", " cannot be written: Is a directory\n"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    content: str, output: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.json"
    results.write_text(content, encoding="utf-8")
    assert main([str(results), "--output", str(tmp_path / output)]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
