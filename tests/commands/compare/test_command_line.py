"""The options of a comparison, which a bisection shares: what is no percentage is refused."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fixtures.catalogue import own as catalogues
from fixtures.catalogue.workloads import WORKLOADS
from fixtures.catalogue.workloads.twins import SUFFIX, twins
from fixtures.commands.bisect import __main__ as bisect
from fixtures.commands.compare import __main__ as compare
from fixtures.commands.compare import side
from fixtures.commands.compare.command_line import parsed, selected
from fixtures.commands.compare.environments import InstallationError
from fixtures.commands.compare.requirements import Requirements
from fixtures.commands.options import settings_of

SIDES = ["--base", "diffusers==0.36.0", "--head", "diffusers==0.42.1"]
ENDS = ["--package", "diffusers", "--good", "0.36.0", "--bad", "0.42.1", "--metric", "counts"]


@pytest.mark.parametrize(("given", "share"), [("0", 0.0), ("1", 0.01), ("12.5", 0.125)])
def test_a_percentage_is_allowed_as_a_share(given: str, share: float) -> None:
    assert parsed([*SIDES, "--allow", given], None).allow == share
    assert bisect.parsed([*ENDS, "--allow", given]).allow == share
    assert parsed(SIDES, None).allow == 0.0


@pytest.mark.parametrize("given", ["nan", "inf", "1e308", "-0.1", "", "much"])
@pytest.mark.parametrize(("main", "asked"), [(compare.main, SIDES), (bisect.main, ENDS)])
def test_what_would_let_everything_pass_is_refused(
    capsys: pytest.CaptureFixture[str],
    main: Callable[[list[str]], int],
    asked: list[str],
    given: str,
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*asked, f"--allow={given}"])
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert f"argument --allow: {given!r} is not a percentage from 0 to 1000" in said


def test_an_unclosed_quote_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for option, words in (
        (["-k", "'sdpa"], "pytest says: "),
        (["--base", '"diffusers'], "is neither a version, a wheel nor a folder"),
    ):
        assert compare.main([*SIDES, *option]) == 2
        said = capsys.readouterr().err
        assert said.startswith("compare: ")
        assert words in said
        assert said.count("\n") == 1


def test_a_side_that_cannot_be_installed_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    @contextlib.contextmanager
    def environment(requirements: Requirements) -> Iterator[Path]:
        made.append(str(requirements))
        if len(made) == 2:
            raise InstallationError("no space")
        yield Path("python")

    monkeypatch.setattr(compare, "selected", lambda *asked: [])
    monkeypatch.setattr(side, "environment", environment)
    assert compare.main(["--base", "diffusers==0.37.0", "--head", "diffusers==0.41.0"]) == 2
    assert made == [
        "diffusers==0.37.0 transformers==5.23.0 ftfy==6.3.1",
        "diffusers==0.41.0 transformers==5.23.0 ftfy==6.3.1",
    ]
    assert capsys.readouterr().err == "compare: no space\n"


def test_twins_are_a_catalogue_in_fp32_on_the_cpu_and_values_are_of_twins_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(catalogues, "_LOADED", {})
    monkeypatch.delitem(sys.modules, "perf_twins", raising=False)
    for name in [name for name in WORKLOADS if name.endswith(SUFFIX)]:
        monkeypatch.delitem(WORKLOADS, name)
    options = parsed([*SIDES, "--twins", "-k", "flux"], None)
    try:
        settings = settings_of(options)
        chosen = selected(settings, options.keyword, options.markers)
    finally:
        for twin in twins():
            WORKLOADS.pop(twin.name, None)
        sys.modules.pop("perf_twins", None)  # which another run here would take for declared
    assert [scenario.id for scenario in chosen] == ["flux-twin-fp32", "flux2-twin-fp32"]
    assert settings.device == "cpu"
    assert options.metric == ["values", "faults"]
    with pytest.raises(SystemExit):
        parsed([*SIDES, "--metric", "values"], None)
    assert "--metric values needs --twins" in capsys.readouterr().err
