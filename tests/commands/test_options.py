"""The suite's options in a command of its own: spelt, explained and refused as by pytest."""

from __future__ import annotations

import argparse

import pytest

from fixtures.commands.options import add_options, settings_of
from fixtures.settings import OPTIONS, Settings, SettingsError


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser, ["--perf-device", "--perf-workload", "--perf-budget"], perf_budget="3600")
    return parser.parse_args(arguments)


def test_what_is_given_is_taken_and_the_rest_is_as_by_default() -> None:
    settings = settings_of(parsed("--perf-device", "cpu", "--perf-workload", "storybook"))
    assert settings == Settings(device="cpu", workloads=("storybook",), budget_s=3600.0)
    again = settings_of(parsed("--perf-workload", "sdxl"))
    assert again.workloads == ("sdxl",), "not what another call was given besides"


def test_every_option_of_the_suite_can_be_offered() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, [option.name for option in OPTIONS])
    assert settings_of(parser.parse_args([])) == Settings()


def test_a_wrong_value_is_blamed_on_the_option_that_was_given() -> None:
    with pytest.raises(SettingsError, match="--perf-device 'abacus'"):
        settings_of(parsed("--perf-device", "abacus"))
    with pytest.raises(KeyError, match="--perf-nothing"):
        add_options(argparse.ArgumentParser(), ["--perf-nothing"])
