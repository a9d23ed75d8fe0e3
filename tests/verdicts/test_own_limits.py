"""The file of one's own limits: what it may say, and the sentence about anything else."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.records.codec import LARGEST
from fixtures.records.units import GIB, MIB
from fixtures.settings import REPOSITORY
from fixtures.verdicts.own_limits import OwnLimits, OwnLimitsError, read_own_limits

PAGE = (REPOSITORY / "docs" / "limits.md").read_text(encoding="utf-8")
EXAMPLE = PAGE.partition("```toml\n")[2].partition("```")[0]


def read(folder: Path, text: str | bytes) -> OwnLimits:
    path = folder / "limits.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_own_limits(path)


def test_the_page_begins_with_a_file_that_is_read_as_it_says(tmp_path: Path) -> None:
    assert PAGE.startswith("# Limits of your own\n\n```toml\n")
    assert len(PAGE.split()) <= 300
    limits = [astuple(one) for one in read(tmp_path, EXAMPLE).limits]
    first, second = (f"limits.toml, [[budget]] {number}" for number in (1, 2))
    tolerance = ("tolerance", "limits.toml, [[tolerance]] 1", "*", "*")
    assert limits == [
        ("budget", first, "sd15-*", "simulated", "peak memory", 3 * GIB),
        ("budget", first, "sd15-*", "simulated", "host calls (a step)", 1500),
        ("budget", first, "sd15-*", "simulated", "operations", 3000),
        ("budget", second, "storybook-*", "cpu", "latency", 5000),
        ("budget", second, "storybook-*", "cpu", "SSIM", 0.9),
        (*tolerance, "peak memory", 0.01),
        (*tolerance, "latency", 0.03),
        (*tolerance, "host calls", 0.05),
    ]


def test_patterns_select_scenarios_and_devices_and_the_last_tolerance_counts(
    tmp_path: Path,
) -> None:
    limits = read(tmp_path, f'{EXAMPLE}\n[[tolerance]]\nscenarios = "sd15-*"\nlatency = "9 %"')
    for scenario, devices, budgets, share in (
        ("sd15-fp16", ("simulated", "h200"), 1, 0.09),
        ("sd15-fp16", ("cpu",), 0, 0.09),
        ("SD15-fp16", ("simulated",), 0, 0.03),
    ):
        own = limits.of(scenario, devices)
        tolerance = own.tolerance("latency")
        assert len(own.budgets("peak memory")) == budgets
        assert tolerance is not None
        assert tolerance.value == pytest.approx(share)
    assert limits.tolerance("SSIM") is None


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('peak_memory = "800 MiB"', 800 * MIB),
        ('peak_memory = "1.5GiB"', 1.5 * GIB),
        ('latency = "0.25 s"', 250),
        ('latency = "300 ms"', 300),
        ("ssim = 1", 1),
    ],
)
def test_a_value_has_its_unit(line: str, value: float, tmp_path: Path) -> None:
    assert [one.value for one in read(tmp_path, f"[[budget]]\n{line}").limits] == [value]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("peak", " is not TOML: Expected '=' after a key"),
        (b"\xff", " is not TOML: 'utf-8' codec can't decode"),
        ("a = " + "[" * 9999, " is not TOML: "),
        ("", " limits nothing; use [[budget]] and [[tolerance]]."),
        ("[[budgets]]", ": 'budgets' is unknown (did you mean 'budget'?)."),
        ("[[zz]]", ": 'zz' is unknown (known: budget, tolerance)."),
        ("[budget]", ": 'budget' is not a list of tables; write [[budget]] above each."),
        ("budget = [1]", ": 'budget' is not a list of tables"),
        ("[[budget]]", ": [[budget]] 1 limits nothing; use peak_memory, latency"),
        (
            "[[budget]]\nssim = 1\n[[budget]]\npeak_memroy = 1",
            ": [[budget]] 2: 'peak_memroy' is unknown (did you mean 'peak_memory'?).",
        ),
        ("[[tolerance]]\nssim = 1", "'ssim' is unknown (known: peak_memory, latency, host_"),
        ('[[budget]]\nssim = 1\nscenarios = ""', "scenarios = '' is not a pattern, such as"),
        ("[[budget]]\nssim = 1\ndevice = 1", "device = 1 is not a pattern"),
        ('[[budget]]\npeak_memory = "12 GB"', "peak_memory = '12 GB' is not memory, such as"),
        ("[[budget]]\npeak_memory = 12", "peak_memory = 12 is not memory"),
        ('[[budget]]\npeak_memory = "0 GiB"', "peak_memory = '0 GiB' is not memory"),
        (f'[[budget]]\npeak_memory = "{"9" * 40} GiB"', " GiB' is not memory"),
        ('[[budget]]\nlatency = "-5 s"', "latency = '-5 s' is not a time, such as"),
        ('[[budget]]\nlatency = "1e3 s"', "latency = '1e3 s' is not a time"),
        ("[[budget]]\nhost_calls = 0", "host_calls = 0 is not a whole number >= 1."),
        ("[[budget]]\nhost_calls = true", "host_calls = True is not a whole number"),
        ("[[budget]]\noperations = 7.5", "operations = 7.5 is not a whole number"),
        ("[[budget]]\noperations = 0x" + "f" * 9999, "operations = what it is is not a whole"),
        ("[[budget]]\nssim = nan", "ssim = nan is not a number from 0.01 to 1."),
        ("[[budget]]\nssim = 1.01", "ssim = 1.01 is not a number"),
        ("[[tolerance]]\nlatency = 0.03", "latency = 0.03 is not a share, such as"),
        ('[[tolerance]]\nlatency = "-3 %"', "latency = '-3 %' is not a share"),
    ],
)
def test_what_cannot_be_meant_gets_one_sentence(
    text: str | bytes, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(OwnLimitsError) as caught:
        read(tmp_path, text)
    said = str(caught.value)
    assert sentence in said
    assert said.endswith(".")
    assert "\n" not in said


def test_a_file_that_is_not_there_or_is_none_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(OwnLimitsError, match=r"^ cannot be read \(.*\); give a TOML file"):
            read_own_limits(path)


VALUES = (
    *(st.integers(-9, 9), st.floats(), st.booleans(), st.text(max_size=9)),
    st.from_regex(r"-?[0-9]{1,12}(\.[0-9]{1,8})? ?(MiB|GiB|ms|s|%|GB)", fullmatch=True),
)


def toml(value: Any) -> str:
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(letter):08X}" for letter in value) + '"'
    return str(value).lower()


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    kind=st.sampled_from(["budget", "tolerance"]),
    key=st.sampled_from(["peak_memory", "latency", "host_calls", "operations", "ssim"]),
    value=st.one_of(VALUES),
)
def test_any_value_is_refused_or_a_limit_that_results_can_hold(
    kind: str, key: str, value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    try:
        own = read(tmp_path_factory.getbasetemp(), f"[[{kind}]]\n{key} = {toml(value)}")
    except OwnLimitsError:
        return
    (limit,) = own.limits
    assert 1e-9 < limit.value < LARGEST or (kind == "tolerance" and limit.value == 0)
    assert not isinstance(value, str) or value[0] in "0123456789"
