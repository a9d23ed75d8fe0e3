"""Trials that are kept: what comes back, what makes them others, and what a damaged file does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.measuring import kept_trials
from fixtures.measuring.kept_trials import KeptTrials, situation_of
from fixtures.records.units import GIB
from fixtures.workloads import WORKLOADS
from tests.support.fits import trial

FLUX = WORKLOADS["flux"]
NAMES = ("vae_tiling", "bf16")


def test_a_trial_comes_back_as_it_was(tmp_path: Path) -> None:
    kept = KeptTrials(tmp_path / "kept", "situation")
    assert kept.get(NAMES) is None
    given = trial(NAMES, program="a()\nb()", needed_bytes=3 * GIB, flops=7)
    kept.put(given)
    found = kept.get(NAMES)
    assert found is not None
    assert vars(replace(found, requests=given.requests)) == vars(given)
    assert (found.requests.log, found.requests.places) == (
        given.requests.log,
        given.requests.places,
    )
    assert found.requests.replay(GIB) == given.requests.replay(GIB)
    assert kept.get(NAMES[::-1]) is None
    assert KeptTrials(tmp_path / "kept", "another").get(NAMES) is None


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"text", None])
def test_a_damaged_file_is_no_trial_and_is_replaced(content: bytes | None, tmp_path: Path) -> None:
    kept = KeptTrials(tmp_path, "situation")
    kept.put(trial(NAMES))
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-40] if content is None else content)
    assert kept.get(NAMES) is None
    kept.put(trial(NAMES))
    assert kept.get(NAMES) is not None


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = KeptTrials(tmp_path / "file", "situation")
    kept.put(trial(NAMES))
    assert kept.get(NAMES) is None


def test_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_trials, "MAX_KEPT", 2)
    kept = KeptTrials(tmp_path, "situation")
    for name in ("one", "two", "three"):
        kept.put(trial((name,)))
    assert kept.get(("one",)) is None
    assert kept.get(("two",)) is not None
    assert kept.get(("three",)) is not None


def test_whatever_a_result_depends_on_makes_another_situation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = situation_of(FLUX, "kernels")
    assert situation_of(FLUX, "kernels") == first
    others = {
        situation_of(WORKLOADS["sd3"], "kernels"),
        situation_of(FLUX, "other kernels"),
        situation_of(replace(FLUX, call=replace(FLUX.call, width=512)), "kernels"),
    }
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    others.add(situation_of(FLUX, "kernels"))
    monkeypatch.delenv("PYTORCH_ALLOC_CONF")
    with monkeypatch.context() as patched:
        patched.setattr(kept_trials, "software_versions", lambda: {"torch": "9"})
        others.add(situation_of(FLUX, "kernels"))
    assert len(others | {first}) == 6
    assert situation_of(FLUX, "kernels") == first


def test_so_does_a_changed_file_of_a_package_and_of_a_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "fixtures"
    package.mkdir()
    (package / "one.py").write_text("a = 1\n")
    monkeypatch.setattr(kept_trials, "REPOSITORY", tmp_path)
    monkeypatch.setattr(kept_trials, "UNDER_TEST", ())
    pipeline = tmp_path / "pipeline"
    (pipeline / "transformer").mkdir(parents=True)
    config = pipeline / "transformer" / "config.json"
    config.write_text('{"layers": 1}')

    def now() -> str:
        kept_trials._state_of_code.cache_clear()
        return situation_of(replace(FLUX, weights=str(pipeline)), "kernels")

    found = [now()]
    (package / "one.py").write_text("a = 12\n")
    found.append(now())
    config.write_text('{"layers": 2}')
    found.append(now())
    kept_trials._state_of_code.cache_clear()
    assert len(set(found)) == 3
