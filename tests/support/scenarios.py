"""Scenarios by their names."""

from __future__ import annotations

from fixtures.catalogue.matrix import Scenario, find_workload
from fixtures.catalogue.techniques import CATALOGUE


def find_scenario(workload: str, technique: str, weights: str = "") -> Scenario:
    """The scenario of these names, on other weights if they are given."""
    return Scenario(find_workload(workload, weights), CATALOGUE[technique])
