"""Hooks only: options, the matrix of scenarios, the refresh, and the end of the run."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from fixtures.catalogues import load, store_of
from fixtures.devices import Device, DeviceError, open_device
from fixtures.devices.kinds import device_name
from fixtures.measuring.recording import new_run
from fixtures.records.baselines import BaselineError
from fixtures.records.merging import MESSAGE, Message, Workers
from fixtures.records.outcome import ScenarioError
from fixtures.report.files import ReportError, check_writable, write_report
from fixtures.report.terminal import closing_line, render
from fixtures.scenarios import (
    Scenario,
    UnknownWorkloadError,
    find_workload,
)
from fixtures.settings import OPTIONS, Settings, SettingsError
from fixtures.suite.cases import check_catalogues, check_weights
from fixtures.suite.families import check_families, register_families
from fixtures.suite.finishing import empty_shard, finish
from fixtures.suite.hints import suggestions
from fixtures.suite.interrupts import repeated_interrupts
from fixtures.suite.parallel import (
    OUTPUT,
    PERF_TESTS,
    check_workers,
    is_parallel,
    is_worker,
    measures,
    selected_scenarios,
    take_accelerator,
)
from fixtures.suite.sharding import cost_s, shard
from fixtures.suite.stash import (
    DEVICE,
    FINISHED,
    NOTHING_JUDGED,
    POSITION,
    RECORDED,
    RUN,
    SCENARIOS,
    SETTINGS,
    STORE,
    WORKERS,
)
from fixtures.workloads import WorkloadError

pytest_plugins = (
    "fixtures.suite.plugin",
    "fixtures.suite.figures",
    "fixtures.suite.latency",
    "fixtures.suite.refreshing",
    "fixtures.suite.parallel",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("perf", "performance regression of diffusers")
    for option in OPTIONS:
        try:
            group.addoption(
                option.name, dest=option.destination, help=option.help, **option.parameters
            )
        except ValueError:
            # pytest loads the conftest.py above every word that is a path, options' values too.
            raise pytest.UsageError(
                "a path on the command line lies in another copy of this suite; give it with an "
                f"equals sign, such as --perf-baselines=DIR ({Path(__file__).parent})."
            ) from None


def pytest_configure(config: pytest.Config) -> None:
    take_accelerator(config)
    try:
        settings = Settings.parse(config.getoption)
        check_catalogues(settings)
        load(settings.catalogues)
        for name in settings.workloads:
            find_workload(name)
        check_weights(settings)  # before anything is asked of the hub
        check_weights(settings, selected_scenarios(settings))
    except (SettingsError, WorkloadError) as error:
        raise pytest.UsageError(str(error)) from None
    except UnknownWorkloadError as error:
        raise pytest.UsageError(f"--perf-workload: {error.args[0]}") from None
    check_workers(config, device_name(settings.device))
    config.stash[SETTINGS] = settings
    config.stash[STORE] = store_of(settings)
    config.stash[RUN] = new_run()
    config.stash[RUN].weights = settings.weights
    config.stash[WORKERS] = Workers()
    register_families(config)
    config.addinivalue_line("markers", "last: after the tests that measure most")
    config.addinivalue_line("markers", "refresh: records baselines (--perf-update-baselines)")
    config.addinivalue_line("markers", "sweep: techniques with other settings (--perf-sweep)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "scenario" not in metafunc.fixturenames:
        return
    found = metafunc.config.stash.get(SCENARIOS, None)
    if found is None:
        found = metafunc.config.stash[SCENARIOS] = selected_scenarios(
            metafunc.config.stash[SETTINGS]
        )
    sweeps = metafunc.definition.get_closest_marker("sweep") is not None
    metafunc.parametrize(
        "scenario",
        [
            pytest.param(
                scenario, id=scenario.id, marks=getattr(pytest.mark, scenario.technique.family)
            )
            for scenario in found
            if scenario.technique.is_swept == sweeps
        ],
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    settings = config.stash[SETTINGS]
    refreshing = settings.update_baselines
    perf = [item for item in items if PERF_TESTS in item.path.parents]
    left_out = [
        item
        for item in perf
        if _refreshes(item) != refreshing or (_sweeps(item) and not settings.sweeps)
    ]
    for item in perf:
        # A deprecation in a package under test is no regression; tests/ keeps warnings as errors.
        item.add_marker(pytest.mark.filterwarnings("default"))
    if left_out:
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
        # Not reported as deselected: -k and -m did not choose them.
    yield
    # Only now, of what -k and -m have chosen: what nobody has is a mistake, an empty shard is none.
    if items and settings.shard != (1, 1):
        _keep_shard(config, items)
        if not items:
            config.stash[RUN].note(empty_shard(config))
    # So that pytest-benchmark runs the rounds which claims ask for, too; no figure depends on it.
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


def _refreshes(item: pytest.Item) -> bool:
    return item.get_closest_marker("refresh") is not None


def _sweeps(item: pytest.Item) -> bool:
    return item.get_closest_marker("sweep") is not None


def _keep_shard(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what other shards run; tests of no scenario belong to the first one."""
    settings, store = config.stash[SETTINGS], config.stash[STORE]
    key = _checked_device(config).key

    def cost(scenario: Scenario) -> float:
        try:
            return cost_s(store.entry(key, scenario.stored_as, scenario.technique.id))
        except BaselineError:
            return cost_s(None)  # The tests will say what is wrong with it.

    mine = shard(selected_scenarios(settings), cost, *settings.shard)

    def stays(item: pytest.Item) -> bool:
        callspec = getattr(item, "callspec", None)
        if callspec is None or "scenario" not in callspec.params:
            return settings.shard[0] == 1
        return callspec.params["scenario"].id in mine

    kept = [item for item in items if stays(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse a wrong device before workers start; a refusal in a worker would be a crash."""
    config = session.config
    check_families(config)
    if is_parallel(config) and not config.option.collectonly and measures(config):
        _checked_device(config)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse a wrong device before anything is measured."""
    config = session.config
    for position, item in enumerate(session.items):
        item.stash[POSITION] = position
    measuring = [item for item in session.items if PERF_TESTS in item.path.parents]
    if measuring and not config.option.collectonly:
        config.stash[DEVICE] = _checked_device(config)


def _checked_device(config: pytest.Config) -> Device:
    settings = config.stash[SETTINGS]
    try:
        device = open_device(settings.device, settings.profile)
    except DeviceError as error:
        raise pytest.UsageError(str(error)) from None
    if settings.expect_device and device.key != settings.expect_device:
        raise pytest.UsageError(
            f"--perf-expect-device {settings.expect_device}: the device found is {device.key!r}; "
            "repair the runner, or expect the other key."
        )
    if not is_worker(config):
        try:
            if settings.update_baselines:
                config.stash[STORE].check_writable(device.key)
            if settings.report is not None:
                check_writable(settings.report)
        except (BaselineError, ReportError) as error:
            raise pytest.UsageError(str(error)) from None
    return device


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    with repeated_interrupts():
        result = yield
    session.config.stash[FINISHED] = True
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Our own errors are sentences; one of a fixture that measures is the test's failure."""
    report = yield
    if call.excinfo is None or PERF_TESTS not in item.path.parents:
        return report
    error = call.excinfo.value
    if isinstance(error, (BaselineError, ScenarioError)):
        report.longrepr = str(error)
    elif not isinstance(error, pytest.fail.Exception):
        return report
    if report.when == "setup":
        report.when = "call"
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.config.stash[RUN].position = item.stash.get(POSITION, 0)


def _tell(session: pytest.Session) -> str:
    """What this worker found, for the process that hands out the tests."""
    met: dict[str, int] = {}
    for position, item in enumerate(session.items):
        callspec = getattr(item, "callspec", None)
        if callspec is not None and "scenario" in callspec.params:
            met.setdefault(callspec.params["scenario"].id, position)
    stash = session.config.stash
    run = stash[RUN]
    return MESSAGE.dump(Message(run, met, run.noted_at, tuple(stash[STORE].staged)))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Put together what workers found; then write new baselines, and the report."""
    config = session.config
    if config.option.collectonly or not measures(config):
        return
    if is_worker(config):
        config.workeroutput[OUTPUT] = _tell(session)  # type: ignore[attr-defined]
        return
    finish(session, exitstatus)
    run, settings = config.stash[RUN], config.stash[SETTINGS]
    if settings.report is not None:
        try:
            written = write_report(settings.report, run, strict=settings.strict)
            run.note(f"Report written: {', '.join(str(path) for path in written)}")
        except ReportError as error:
            run.note(str(error))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    run, quiet = config.stash[RUN], terminalreporter.verbosity < 0
    if empty_shard(config) in run.notes:
        if quiet:
            terminalreporter.write_line(empty_shard(config))
    elif exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and config.option.keyword:
        found = selected_scenarios(config.stash[SETTINGS])
        terminalreporter.write_line(suggestions(config.option.keyword, found))
    if NOTHING_JUDGED in config.stash:
        terminalreporter.write_line(config.stash[NOTHING_JUDGED], red=True)
    if not (run.scenarios or run.notes):
        return
    color = terminalreporter.hasmarkup and "NO_COLOR" not in os.environ
    width = terminalreporter._tw.fullwidth
    strict = config.stash[SETTINGS].strict
    if not quiet:
        terminalreporter.section("performance")
        recorded = config.stash.get(RECORDED, set())
        text = render(run, width=width, color=color, strict=strict, recorded=recorded)
        terminalreporter.write(text)
    if not config.stash[SETTINGS].update_baselines:
        terminalreporter.write_line(closing_line(run, strict=strict))
