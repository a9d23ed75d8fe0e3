"""The command line: every option has its place, and a wrong value gets one sentence."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixtures.commands.compare import __main__ as compare
from fixtures.settings import BASELINES, OPTIONS, REPOSITORY, Option, Settings, SettingsError
from tests.support.running import run_here


def given_options(**values: Any) -> Callable[[str], Any]:
    """What pytest would answer: the defaults, with some options given."""
    answers = {option.destination: option.parameters["default"] for option in OPTIONS}
    answers["markexpr"] = ""  # pytest's own
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
    values = {
        "perf_device": "simulated",
        "perf_profile": "rtx-4090",
        "perf_workload": ["storybook", "sd15"],
        "perf_catalogue": ["mine.py", "ours"],
        "perf_weights": "random",
        "perf_update_baselines": True,
        "perf_reason": "  torch 2.13  ",
        "perf_baselines": str(tmp_path),
        "perf_tolerance": ["latency=9%", "latency=3%", "peak_memory=0.5%"],  # the last counts
        "perf_expect_device": "nvidia-h200",
        "perf_budget": "12.5",
        "perf_shard": "2/3",
        "perf_strict": True,
        "perf_report": str(tmp_path / "report"),
    }
    assert values.keys() == {option.destination for option in OPTIONS}
    parsed = Settings.parse(given_options(**values))
    assert parsed == Settings(
        device="simulated",
        profile="rtx-4090",
        workloads=("storybook", "sd15"),
        catalogues=(Path("mine.py"), Path("ours")),
        weights="random",
        update_baselines=True,
        reason="torch 2.13",
        baselines=tmp_path,
        tolerances={"latency": 0.03, "peak_memory": 0.005},
        expect_device="nvidia-h200",
        budget_s=12.5,
        shard=(2, 3),
        strict=True,
        report=tmp_path / "report",
    )


def test_every_option_is_documented_and_begins_with_perf() -> None:
    assert len({option.destination for option in OPTIONS}) == len(OPTIONS)
    for option in OPTIONS:
        assert option.name.startswith("--perf-")
        assert option.destination == option.name[2:].replace("-", "_")
        assert len(option.help) > 10
        assert "(default: " in option.help or not option.parameters["default"]


@pytest.mark.parametrize(
    ("option", "values", "words"),
    [
        ("device", ["CPU", "tpu", "cuda:0", "cpu "], "is unknown; use auto, cpu, cuda, simulated."),
        ("profile", ["two words", "h200\n", "../h200", "a;b"], "is not a valid profile name."),
        ("budget", ["soon", "-1", "nan", "1e999"], "must be a number of seconds >= 0."),
        (
            "shard",
            ["0/2", "3/2", "half", "1/0", "1/2/3", "-1/2", "1/10000", "1/2 "],
            "is not a valid shard; use I/N, such as 1/4.",
        ),
    ],
)
def test_a_value_that_is_none_is_refused(option: str, values: list[str], words: str) -> None:
    for value in values:
        assert refusal(**{f"perf_{option}": value}) == f"--perf-{option} {value!r} {words}"


def test_a_profile_that_nothing_would_use_is_refused() -> None:
    assert "add --perf-device simulated" in refusal(perf_device="auto", perf_profile="t4")


def test_a_reason_that_cannot_be_stored_is_refused_before_anything_is_measured() -> None:
    refused = refusal(perf_update_baselines=True, perf_reason="torch \udcff")
    assert refused.startswith("--perf-reason is not UTF-8")


def test_new_baselines_need_a_reason_which_is_for_nothing_else() -> None:
    sentence = refusal(perf_update_baselines=True)
    assert sentence.startswith("--perf-update-baselines needs --perf-reason TEXT")
    assert refusal(perf_reason="why").startswith("--perf-reason is for a refresh")


@pytest.mark.parametrize("name", ["perf", "compare"])
def test_the_help_has_the_default_that_is_in_force(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "perf":
        words, budget = run_here("--help").stdout, 300
    else:
        with pytest.raises(SystemExit):
            compare.main(["--help"])
        words, budget = capsys.readouterr().out, 3600
    words = " ".join(words.split())
    assert f"of inconclusive latencies (default: {budget})" in words
    assert "stands for (default: h200)" in words
    assert "%(default)s" not in words


WITH_VALUE = [option for option in OPTIONS if "action" not in option.parameters]


@pytest.mark.parametrize("option", WITH_VALUE, ids=lambda option: str(option.name))
@pytest.mark.parametrize("empty", ["", "\t\n", ["sd15", ""]], ids=repr)
def test_an_empty_value_is_never_taken_for_none_at_all(option: Option, empty: Any) -> None:
    assert refusal(**{option.destination: empty}) == (
        f"{option.name} is empty, perhaps from an unset variable; give it a value, or leave it out."
    )


def test_baselines_lie_in_a_folder_which_need_not_be_there_yet(tmp_path: Path) -> None:
    path = tmp_path / "baselines"
    assert Settings.parse(given_options(perf_baselines=str(path))).baselines == path
    assert not path.exists()
    path.write_text("", encoding="utf-8")
    assert refusal(perf_baselines=str(path)) == (
        f"--perf-baselines {path} is a file; give a folder."
    )
    refused = refusal(perf_baselines="x" * 300)
    assert refused == "--perf-baselines cannot be used (File name too long); give a folder."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("latncy=3%", "'latncy' is unknown; did you mean latency?"),
        ("memory=3%", "'memory' is unknown; did you mean peak_memory?"),
        ("=3%", "'' is unknown; known: latency, peak_memory, host_calls."),
        ("images=3%", "'images' is judged by no share of its baseline; known: latency, peak"),
        *(
            (f"latency={share}", f"{share!r} is not a percentage from 0% to 100%, such as 3%.")
            for share in ("", "3", "0.03", "-1%", "nan%", "inf%", "101%", "1e1%", "3 %", "3%\n")
        ),
        ("latency", "'' is not a percentage"),
    ],
)
def test_a_tolerance_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.parse(given_options(perf_tolerance=[text]))
    assert str(caught.value).startswith(f"--perf-tolerance {text!r}: {words}")


# The accept command


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        (Settings(), ""),
        (Settings(device="cpu", profile="rtx-4090"), "--perf-device cpu"),
        (
            Settings(catalogues=(Path("mine.py"), Path("/our techniques"))),
            "--perf-catalogue=mine.py '--perf-catalogue=/our techniques'",
        ),
        (Settings(baselines=BASELINES / ".." / "baselines"), ""),
        (
            Settings(tolerances={"latency": 0.07, "peak_memory": 0.0}),
            "--perf-tolerance latency=7% --perf-tolerance peak_memory=0%",
        ),
        # What does not choose what is measured is not repeated.
        (Settings(update_baselines=True, reason="why", expect_device="cpu", budget_s=5.0), ""),
        (Settings(shard=(1, 2), strict=True, report=Path("report")), ""),
    ],
)
def test_what_was_chosen_is_chosen_again(settings: Settings, options: str) -> None:
    assert settings.chosen == options


def test_a_shell_gives_the_options_back_as_they_were() -> None:
    settings = Settings(
        device="simulated",
        profile="rtx-4090",
        workloads=("two words", "a;b"),
        weights="my pipeline; rm -rf ~",
        baselines=Path("/stored/it's mine $(date)"),
    )
    assert shlex.split(settings.chosen) == [
        *("--perf-device", "simulated", "--perf-profile", "rtx-4090"),
        *("--perf-workload", "two words", "--perf-workload", "a;b"),
        *("--perf-weights", "my pipeline; rm -rf ~"),
        *("--perf-baselines", "/stored/it's mine $(date)"),
    ]
