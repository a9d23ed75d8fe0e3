"""The command line: every option has its place, and a wrong value gets one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as wide
from hypothesis import strategies as st

from fixtures.settings import DEFAULT_PROFILE, DEVICES, OPTIONS, REPOSITORY, Settings, SettingsError


def given_options(**values: Any) -> Callable[[str], Any]:
    """What pytest would answer: the defaults, with some options given."""
    answers = {option.destination: option.parameters["default"] for option in OPTIONS}
    assert values.keys() <= answers.keys()
    return {**answers, **values}.__getitem__


def refusal(**values: Any) -> str:
    """The sentence about options that cannot be used."""
    with pytest.raises(SettingsError) as caught:
        Settings.parse(given_options(**values))
    sentence = str(caught.value)
    assert sentence.startswith("--perf-")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def test_without_options_the_settings_are_their_own_defaults() -> None:
    assert Settings.parse(given_options()) == Settings()
    assert Settings().baselines == REPOSITORY / "baselines"


def test_every_option_reaches_its_setting(tmp_path: Path) -> None:
    parsed = Settings.parse(
        given_options(
            perf_device="cpu",
            perf_profile="rtx-4090",
            perf_workload=["storybook", "sd15"],
            perf_weights="random",
            perf_update_baselines=True,
            perf_reason="  torch 2.13  ",
            perf_baselines=str(tmp_path),
            perf_expect_device="nvidia-h200",
            perf_budget="12.5",
            perf_strict=True,
            perf_report=str(tmp_path / "report"),
        )
    )
    assert parsed == Settings(
        device="cpu",
        profile="rtx-4090",
        workloads=("storybook", "sd15"),
        weights="random",
        update_baselines=True,
        reason="torch 2.13",
        baselines=tmp_path,
        expect_device="nvidia-h200",
        budget_s=12.5,
        strict=True,
        report=tmp_path / "report",
    )


def test_every_option_is_documented_and_begins_with_perf() -> None:
    assert len({option.destination for option in OPTIONS}) == len(OPTIONS)
    for option in OPTIONS:
        assert option.name.startswith("--perf-")
        assert option.destination == option.name[2:].replace("-", "_")
        assert len(option.help) > 10
        assert "default" in option.parameters


@pytest.mark.parametrize("device", DEVICES)
def test_every_known_device_is_taken(device: str) -> None:
    assert Settings.parse(given_options(perf_device=device)).device == device


@pytest.mark.parametrize("device", ["", "CPU", "tpu", "cuda:0", "cpu "])
def test_an_unknown_device_is_refused_with_the_known_ones(device: str) -> None:
    assert refusal(perf_device=device) == (
        f"--perf-device {device!r} is unknown; it takes auto, cpu, cuda, simulated."
    )


@pytest.mark.parametrize("profile", ["", " ", "two words", "h200\n", "../h200", "a;b"])
def test_a_profile_that_is_no_word_is_refused(profile: str) -> None:
    assert refusal(perf_profile=profile) == (
        f"--perf-profile {profile!r} is no name of an accelerator; it takes one word."
    )


@pytest.mark.parametrize("budget", ["", "soon", "-1", "nan", "inf", "-inf", "1e999", "1,5", "90s"])
def test_a_budget_that_is_no_number_of_seconds_is_refused(budget: str) -> None:
    assert refusal(perf_budget=budget) == (
        f"--perf-budget {budget!r} is not a number of seconds from 0 on."
    )


@wide(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.text(max_size=20))
def test_any_budget_is_either_refused_or_finite_and_not_negative(budget: str) -> None:
    try:
        parsed = Settings.parse(given_options(perf_budget=budget))
    except SettingsError:
        return
    assert 0 <= parsed.budget_s < float("inf")


def test_a_budget_of_nothing_is_a_budget() -> None:
    assert Settings.parse(given_options(perf_budget="0")).budget_s == 0


@pytest.mark.parametrize("reason", ["", "   ", "\t\n"])
def test_new_baselines_need_a_reason(reason: str) -> None:
    sentence = refusal(perf_update_baselines=True, perf_reason=reason)
    assert sentence.startswith("--perf-update-baselines needs --perf-reason TEXT")


def test_a_file_in_place_of_the_baselines_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "baselines"
    path.write_text("", encoding="utf-8")
    assert refusal(perf_baselines=str(path)) == (
        f"--perf-baselines {path} is a file; it takes a folder."
    )


def test_a_baselines_folder_that_is_not_there_yet_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "new"
    assert Settings.parse(given_options(perf_baselines=str(path))).baselines == path
    assert not path.exists()


def test_a_baselines_path_that_the_system_refuses_gets_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(path: Path) -> bool:
        raise OSError(36, "File name too long")

    monkeypatch.setattr(Path, "exists", refuse)
    assert refusal() == ("--perf-baselines cannot be used (File name too long); it takes a folder.")


@pytest.mark.parametrize(
    ("device", "profile", "options"),
    [
        ("auto", DEFAULT_PROFILE, ""),
        ("cpu", DEFAULT_PROFILE, "--perf-device cpu"),
        ("simulated", DEFAULT_PROFILE, "--perf-device simulated"),
        ("simulated", "rtx-4090", "--perf-device simulated --perf-profile rtx-4090"),
    ],
)
def test_the_device_that_was_chosen_can_be_chosen_again(
    device: str, profile: str, options: str
) -> None:
    assert Settings(device=device, profile=profile).device_options == options
