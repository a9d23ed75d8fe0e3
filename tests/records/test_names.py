"""Whoever mistypes a name is told which one was meant."""

from __future__ import annotations

import pytest

from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads import WORKLOADS
from fixtures.devices.simulated.profiles import PROFILES
from fixtures.records.names import nearest


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("flx", "flux"),
        ("flux2-dev", "flux2 or flux"),
        ("RTX 4090", "rtx-4090"),
        ("a100", "a100-80gb or a100-40gb"),
        ("H100-SXM", "h100"),
        ("modelcpuoffload", "model_cpu_offload"),
    ],
)
def test_the_nearest_name_is_offered(word: str, meant: str) -> None:
    names = [*WORKLOADS, *PROFILES, *CATALOGUE.techniques]
    assert nearest(word, names) == f"did you mean {meant}?"


def test_where_no_name_is_like_it_all_are_named() -> None:
    assert nearest("gaudi", ["t4", "", "h100"]) == "known: t4, h100."
    assert nearest("", ["t4"]) == "known: t4."


def test_two_letters_are_no_part_of_a_name() -> None:
    assert nearest("ti", ["titan-rtx"]) == "known: titan-rtx."
