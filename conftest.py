"""Hooks only: options, the matrix of scenarios, workers, the refresh, and the end of the run."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from fixtures.baselines import BaselineError, BaselineStore
from fixtures.devices import Device, DeviceError, device_name, open_device
from fixtures.machine import VISIBLE, commit, cuda_devices
from fixtures.report.files import ReportError, check_writable, write_report
from fixtures.report.merging import Message, Workers
from fixtures.report.record import RunRecord
from fixtures.report.terminal import closing_line, render
from fixtures.scenarios import (
    Scenario,
    UnknownWorkloadError,
    find_workload,
    groups_of,
    scenarios,
)
from fixtures.settings import OPTIONS, Settings, SettingsError
from fixtures.sharding import cost_s, shard
from fixtures.stash import DEVICE, PLACE, RUN, SCENARIOS, SETTINGS, STORE, WORKERS
from fixtures.techniques import CATALOGUE
from fixtures.workloads import DEFAULT_WORKLOADS

pytest_plugins = ("fixtures.plugin",)

PERF_TESTS = Path(__file__).parent / "perf_tests"
REFRESH = "test_refresh"
LAST = ("test_documented_claims.py", "test_baselines.py")
"""Files that speak about what the others measured."""
VISIBLE_HERE = "perf_visible"
"""Under which a worker of pytest-xdist is told which accelerator is its own."""
OUTPUT = "perf"
"""Under which a worker of pytest-xdist tells what it found."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("perf", "performance regression of diffusers")
    for option in OPTIONS:
        group.addoption(option.name, dest=option.destination, help=option.help, **option.parameters)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Let `-n` keep together what is judged together, unless another --dist was given."""
    option = config.option
    undecided = getattr(option, "dist", "") == "no" and not option.distload
    if undecided and option.numprocesses and _measures(config):
        option.dist = "loadgroup"
        if option.maxworkerrestart is None:
            # What a crashed worker found is lost, so the run is red and need not go on; and after
            # a replacement xdist 3.8 may wait for ever (pytest-dev/pytest-xdist#1323).
            option.maxworkerrestart = "0"


def pytest_configure(config: pytest.Config) -> None:
    if _is_worker(config) and VISIBLE_HERE in config.workerinput:  # type: ignore[attr-defined]
        # Before anything asks the driver, which reads it once.
        os.environ[VISIBLE] = config.workerinput[VISIBLE_HERE]  # type: ignore[attr-defined]
    try:
        settings = Settings.parse(config.getoption)
        for name in settings.workloads:
            find_workload(name)
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from None
    except UnknownWorkloadError as error:
        raise pytest.UsageError(f"--perf-workload: {error.args[0]}") from None
    if _parallel(config) and _measures(config) and device_name(settings.device) == "cpu":
        raise pytest.UsageError(
            "-n is refused on the CPU: workers would share the cores they measure; leave -n out."
        )
    if _shares_accelerators(config):
        count = len(cuda_devices())
        if (config.option.numprocesses or 0) > count:
            raise pytest.UsageError(
                f"-n {config.option.numprocesses} is refused: there are {count} accelerators, and "
                "workers never share one; take -n auto."
            )
    config.stash[SETTINGS] = settings
    config.stash[STORE] = BaselineStore(settings.baselines)
    config.stash[RUN] = RunRecord(
        recorded_at=datetime.now(timezone.utc).isoformat(timespec="seconds"), commit=commit()
    )
    config.stash[WORKERS] = Workers()
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
    names = settings.workloads or DEFAULT_WORKLOADS[device_name(settings.device)]
    return scenarios(names, settings.weights)


def _parallel(config: pytest.Config) -> bool:
    """Whether this process hands its tests to workers."""
    return getattr(config.option, "dist", "no") != "no"


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _measures(config: pytest.Config) -> bool:
    """Whether `perf_tests` is among what pytest was asked to run."""
    asked = [(config.invocation_params.dir / arg.split("::")[0]).resolve() for arg in config.args]
    return any(PERF_TESTS in (path, *path.parents) or path in PERF_TESTS.parents for path in asked)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    settings = config.stash[SETTINGS]
    refreshing = settings.update_baselines
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
    if settings.shard != (1, 1):
        _keep_shard(config, items)
    items.sort(key=lambda item: LAST.index(item.path.name) + 1 if item.path.name in LAST else 0)


def _keep_shard(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what other shards run; tests of no scenario belong to the first one."""
    settings, store = config.stash[SETTINGS], config.stash[STORE]
    key = _checked_device(config).key

    def cost(scenario: Scenario) -> float:
        try:
            return cost_s(store.entry(key, scenario.workload.name, scenario.technique.id))
        except BaselineError:
            return cost_s(None)  # The tests will say what is wrong with it.

    mine = shard(_scenarios(settings), cost, *settings.shard)

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
    if _parallel(config) and not config.option.collectonly and _measures(config):
        _checked_device(config)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse a wrong device before anything is measured."""
    config = session.config
    for place, item in enumerate(session.items):
        item.stash[PLACE] = place
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
            "mend the runner, or expect the other key."
        )
    if not _is_worker(config):
        try:
            if settings.update_baselines:
                config.stash[STORE].check_writable(device.key)
            if settings.report is not None:
                check_writable(settings.report)
        except (BaselineError, ReportError) as error:
            raise pytest.UsageError(str(error)) from None
    return device


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.config.stash[RUN].place = item.stash.get(PLACE, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Group by scenario; xdist 3.8 loses its own groups, parts of node ids, under pytest 9."""
    if config.option.dist != "loadgroup" or not _measures(config):
        return None
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    groups = groups_of(_scenarios(config.stash[SETTINGS]))
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = lambda nodeid: groups.get(
        nodeid.rpartition("[")[2].removesuffix("]"), nodeid
    )
    return scheduler


def _shares_accelerators(config: pytest.Config) -> bool:
    """Whether this process hands timed tests to workers, each with an accelerator of its own."""
    on_cuda = device_name(config.getoption("perf_device")) == "cuda"
    return on_cuda and not _is_worker(config) and _parallel(config) and _measures(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One worker per accelerator; elsewhere xdist counts cores."""
    on_cuda = device_name(config.getoption("perf_device")) == "cuda"
    return max(1, len(cuda_devices())) if on_cuda and _measures(config) else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give each worker its accelerator."""
    if _shares_accelerators(node.config):
        number = int(node.gateway.id.removeprefix("gw"))
        node.workerinput[VISIBLE_HERE] = cuda_devices()[number]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodeready(node: Any) -> None:
    node.config.stash[WORKERS].started.add(node.gateway.id)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keep what a worker found; one that crashed has no output."""
    output = getattr(node, "workeroutput", {})
    node.config.stash[WORKERS].ended(node.gateway.id, output.get(OUTPUT))


def _tell(session: pytest.Session) -> str:
    """What this worker found, for the process that hands out the tests."""
    met: dict[str, int] = {}
    for place, item in enumerate(session.items):
        callspec = getattr(item, "callspec", None)
        if callspec is not None and "scenario" in callspec.params:
            met.setdefault(callspec.params["scenario"].id, place)
    stash = session.config.stash
    return Message(stash[RUN], met, tuple(stash[STORE].staged_json())).encode()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Put together what workers found; then write new baselines, and the report."""
    config = session.config
    if config.option.collectonly or not _measures(config):
        return
    if _is_worker(config):
        config.workeroutput[OUTPUT] = _tell(session)  # type: ignore[attr-defined]
        return
    _finish(session, exitstatus)
    run, settings = config.stash[RUN], config.stash[SETTINGS]
    if settings.report is not None:
        try:
            written = write_report(settings.report, run, strict=settings.strict)
            run.note(f"Report written: {', '.join(str(path) for path in written)}")
        except ReportError as error:
            run.note(str(error))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _finish(session: pytest.Session, exitstatus: int) -> None:
    """Merge what workers found, and write new baselines.

    All are written or none: only a refresh without a failure changes anything, and a worker
    writes nothing.
    """
    config = session.config
    run, workers = config.stash[RUN], config.stash[WORKERS]
    workers.merge_into(run)
    if workers.lost and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if not config.stash[SETTINGS].update_baselines:
        if workers.lost:
            run.note(f"Figures may be missing: {workers.lost}.")
        return
    if workers.lost:
        run.note(f"No baseline was written: {workers.lost}.")
        return
    if exitstatus != pytest.ExitCode.OK:
        run.note("No baseline was written: the refresh did not finish without a failure.")
        return
    store = config.stash[STORE]
    try:
        store.stage_json(workers.staged)
        for path in store.commit():
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
