"""Hooks only: options, the matrix of scenarios, the refresh, and the end of the run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fixtures.baselines import BaselineError, BaselineStore
from fixtures.devices import DeviceError, device_name, open_device
from fixtures.report.record import RunRecord
from fixtures.report.terminal import closing_line, render
from fixtures.scenarios import Scenario, UnknownWorkloadError, find_workload, scenarios
from fixtures.settings import OPTIONS, Settings, SettingsError
from fixtures.stash import DEVICE, RUN, SCENARIOS, SETTINGS, STORE
from fixtures.techniques import CATALOGUE
from fixtures.workloads import DEFAULT_WORKLOADS

pytest_plugins = ("fixtures.plugin",)

PERF_TESTS = Path(__file__).parent / "perf_tests"
REFRESH = "test_refresh"
LAST = ("test_documented_claims.py", "test_baselines.py")
"""Files that speak about what the others measured."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("perf", "performance regression of diffusers")
    for option in OPTIONS:
        group.addoption(option.name, dest=option.destination, help=option.help, **option.parameters)


def pytest_configure(config: pytest.Config) -> None:
    try:
        settings = Settings.parse(config.getoption)
        for name in settings.workloads:
            find_workload(name)
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from None
    except UnknownWorkloadError as error:
        raise pytest.UsageError(f"--perf-workload: {error.args[0]}") from None
    parallel = getattr(config.option, "numprocesses", None)
    if parallel and _measures(config) and device_name(settings.device) == "cpu":
        raise pytest.UsageError(
            "-n is refused on the CPU: workers would share the cores they measure; leave -n out."
        )
    config.stash[SETTINGS] = settings
    config.stash[STORE] = BaselineStore(settings.baselines)
    config.stash[RUN] = RunRecord()
    for family in sorted({technique.family for technique in CATALOGUE}):
        config.addinivalue_line("markers", f"{family}: techniques of the family '{family}'")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "scenario" not in metafunc.fixturenames:
        return
    found = metafunc.config.stash.get(SCENARIOS, None)
    if found is None:
        found = metafunc.config.stash[SCENARIOS] = _scenarios(metafunc.config.stash[SETTINGS])
    metafunc.parametrize(
        "scenario",
        [
            pytest.param(
                scenario, id=scenario.id, marks=getattr(pytest.mark, scenario.technique.family)
            )
            for scenario in found
        ],
    )


def _scenarios(settings: Settings) -> list[Scenario]:
    default = DEFAULT_WORKLOADS[device_name(settings.device)]
    return scenarios(settings.workloads or default, settings.weights)


def _measures(config: pytest.Config) -> bool:
    """Whether `perf_tests` is among what pytest was asked to run."""
    asked = [(config.invocation_params.dir / arg.split("::")[0]).resolve() for arg in config.args]
    return any(PERF_TESTS in (path, *path.parents) or path in PERF_TESTS.parents for path in asked)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    refreshing = config.stash[SETTINGS].update_baselines
    perf = [item for item in items if PERF_TESTS in item.path.parents]
    left_out = [
        item for item in perf if (getattr(item, "originalname", "") == REFRESH) != refreshing
    ]
    for item in perf:
        # A deprecation in a package under test is no regression; tests/ keeps warnings as errors.
        item.add_marker(pytest.mark.filterwarnings("default"))
    if left_out:
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
        # Not reported as deselected: -k and -m did not choose them.
    items.sort(key=lambda item: LAST.index(item.path.name) + 1 if item.path.name in LAST else 0)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse a wrong device before anything is measured."""
    config = session.config
    measuring = [item for item in session.items if PERF_TESTS in item.path.parents]
    if config.option.collectonly or not measuring:
        return
    settings = config.stash[SETTINGS]
    try:
        device = open_device(settings.device)
    except DeviceError as error:
        raise pytest.UsageError(str(error)) from None
    if settings.expect_device and device.key != settings.expect_device:
        raise pytest.UsageError(
            f"--perf-expect-device {settings.expect_device}: the device found is {device.key!r}; "
            "mend the runner, or expect the other key."
        )
    if settings.update_baselines:
        try:
            config.stash[STORE].check_writable(device.key)
        except BaselineError as error:
            raise pytest.UsageError(str(error)) from None
    config.stash[DEVICE] = device


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write new baselines, all or none: only a refresh without a failure changes anything."""
    config = session.config
    if not config.stash[SETTINGS].update_baselines or config.option.collectonly:
        return
    run = config.stash[RUN]
    if exitstatus != pytest.ExitCode.OK:
        run.note("No baseline was written: the refresh did not finish without a failure.")
        return
    try:
        for path in config.stash[STORE].commit():
            run.note(f"Baseline written: {path}")
    except BaselineError as error:
        run.note(str(error))
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    config = terminalreporter.config
    run = config.stash[RUN]
    if not (run.scenarios or run.notes):
        return
    color = terminalreporter.hasmarkup and "NO_COLOR" not in os.environ
    width = terminalreporter._tw.fullwidth
    if terminalreporter.verbosity >= 0:
        terminalreporter.section("performance")
        terminalreporter.write(render(run, width=width, color=color))
    strict = config.stash[SETTINGS].strict
    if not config.stash[SETTINGS].update_baselines:
        terminalreporter.write_line(closing_line(run.counts(strict=strict), run.claims))
