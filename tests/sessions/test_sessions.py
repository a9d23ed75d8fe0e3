"""README and docs to the letter: what a user copies from them, on machines that users have."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.catalogue.techniques.test_own_technique_page import COMMANDS, FILES
from tests.sessions.conftest import INSTALL
from tests.sessions.machine import Machine
from tests.sessions.pages import block, command, skip_without

pytestmark = pytest.mark.long
SIMULATED = command("README.md", "--perf-device simulated -n 2")
REPORTED = command("README.md", "perf -- -k")
REPORT = {"results.json", "summary.md", "report.html"}
QUICK = ' -k "[storybook-fp32] and test_activation"'


def written(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_machine_without_python(installed: Machine) -> None:
    installed.run("! command -v python")
    said = installed.do(f'{SIMULATED} -k "[sd15-fp16]"')
    assert "1 judged: 1 passed" in said
    assert re.search(r"under test: diffusers .*, torch \S+\+cpu, ", said)


def test_a_path_with_spaces(installed: Machine, tmp_path: Path) -> None:
    machine = Machine.new(tmp_path, "my folder with spaces").take_environment(installed, nox=False)
    machine.run(f"{INSTALL}\n{REPORTED.replace('fp16', 'fp32')}")
    assert written(machine.folder / "report") >= REPORT
    rebuilt = command("docs/report.md", "nox -s report -- results.json")
    machine.do(f"python -m {rebuilt}".replace("results", "report/results").replace("DIR", "again"))
    assert written(machine.folder / "again") >= REPORT


def test_a_read_only_checkout(machine: Machine) -> None:
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root writes everywhere, and there is no setpriv to give that up")
        machine = replace(machine, before=("setpriv", "--bounding-set=-all", "--inh-caps=-all"))
    machine.run("cp -R .nox ~/nox; chmod -R a-w .")
    try:
        machine.run("! touch new")
        run = f"NOX_ENVDIR=~/nox {REPORTED.replace('[storybook-fp16]', '[sd15-fp16]')}"
        run += " --perf-device simulated"
        refused = machine.do(run, status=1)
        assert "--perf-report report" in refused
        assert "Traceback" not in refused
        said = machine.do(run.replace("report report", "report ~/report"))
    finally:
        machine.run("chmod -R u+w .")
    assert "1 judged: 1 passed" in said
    assert written(machine.home / "report") >= REPORT


def test_a_technique_of_one_s_own(machine: Machine) -> None:
    """Beside what `test_own_technique_page` runs: nox, a file above, and the command it prints."""
    for name, code in FILES.items():
        (machine.folder.parent / name).write_text(code, encoding="utf-8")
    small = ' --perf-catalogue=../my_workloads.py --perf-workload "thumbnail"'
    small += " --perf-device simulated"
    line = command("docs/your-own-technique.md", "nox -s perf -- --perf-catalogue=../my_techniques")
    assert COMMANDS[0].options[0] in line
    missed = machine.do(f"{line}{small}", status=1)
    accept = re.search(r"no entry in .*; record it with: (nox -s refresh .*)$", missed, re.M)
    assert accept is not None, missed
    assert "Baseline written: " in machine.do(accept[1])
    assert "1 judged: 1 passed" in machine.do(f"{line}{small}")


def test_a_fit_that_is_interrupted_and_one_that_is_not(machine: Machine) -> None:
    said = machine.do(
        command("docs/fit.md", "nox -s fit -- flux"), status=130, interrupt=r"^1/\d+ "
    )
    assert re.search(r"^Interrupted: \d+ of \d+ ways tried, not ", said, re.M)
    whole = machine.run(command("docs/fit.md", "-m fixtures.commands.fit flux"))
    shown = " ".join(block("docs/fit.md", "Fastest that fits").split())
    figures = shown[shown.index("Fastest that fits") :].partition(", and takes")[0]
    assert figures in " ".join(whole.split())


def test_two_sides_of_what_is_installed(machine: Machine) -> None:
    skip_without("https://download.pytorch.org/whl/cpu/")
    line = re.sub(r"-k sd15$", '-k "[sd15-fp16]"', command("README.md", "nox -s compare"))
    sides = re.sub(r"diffusers==[\d.]+", "diffusers==0.42.1", line)
    said = machine.do(f"export UV_TORCH_BACKEND=cpu; {sides}")
    assert re.search(r"^0 findings.* 1 scenario compared", said, re.M), said


def test_ctrl_c_keeps_what_was_measured(machine: Machine) -> None:
    said = machine.do(
        command("docs/report.md", "python -m nox -s perf -- --perf-report report"),
        status=130,
        interrupt=r"^\[ *2/\d+\] measuring",
    )
    assert "storybook (weights: embedded) on cpu" in said
    assert re.search(r"^technique +verdict .*\n─*\nfp32 ", said, re.M)
    assert re.search(r"^\d+ judged: ", said, re.M)
    assert written(machine.folder / "report") >= REPORT
    kept = json.loads((machine.folder / "report/results.json").read_text("utf-8"))
    assert "storybook-fp32" in kept["scenarios"]


def test_exit_codes_through_nox_and_without(machine: Machine) -> None:
    through = "python -m nox -s perf --"
    alone = command("docs/options.md", "-m pytest perf_tests ...").removesuffix(" ...")
    collected = machine.do(f"{through} --collect-only -q")
    assert "::test_activation[storybook-fp32]" in collected
    assert machine.run(f"{alone} --collect-only -q").splitlines()[-1] in collected
    for options, status in (("-k nothing", 5), ("--perf-workload SD15", 4), ("--unknown", 4)):
        machine.do(f"{through} {options}", status=1)
        machine.run(f"{alone} {options}", status=status)
    fit = command("docs/fit.md", "nox -s fit -- flux").replace("flux", "flx")
    assert "flux" in machine.do(fit, status=1)
    machine.run(command("docs/fit.md", "commands.fit flux").replace("flux", "flx"), status=2)
