"""Draws what fp32 draws: SSIM with the fp32 picture of the same seed, made in the same run."""

import pytest

from fixtures.controls import controls
from fixtures.devices import Device
from fixtures.measurement import Bench, Observation, ScenarioError
from fixtures.metrics import SSIM
from fixtures.plugin import Judge
from fixtures.recording import put_pictures
from fixtures.report.record import RunRecord, ScenarioRecord
from fixtures.scenarios import Scenario
from fixtures.settings import Settings
from fixtures.similarity import seam_contrast
from fixtures.verdicts import Case, Verdict, judge_pictures, judge_seams

CONTROLS_UP_TO_S = 10.0
"""A report shows pictures that are wrong on purpose, some ten calls; not where a call is slow."""


def test_visual_equivalence(
    scenario: Scenario,
    device: Device,
    observed: Observation,
    bench: Bench,
    case: Case,
    record: ScenarioRecord,
    run_record: RunRecord,
    settings: Settings,
    judge: Judge,
) -> None:
    """Of a batch the worst picture counts; NaN, black and flat are broken before that.

    Tiled pictures must not show where the tiles meet, either.
    """
    if no_pictures := device.missing("pictures"):
        pytest.skip(f"unjudged: {no_pictures}")
    min_ssim = scenario.technique.min_ssim(scenario.workload.name)
    try:
        record.ssim = bench.ssim(scenario)
        if settings.report is not None:
            put_pictures(record, observed, bench.active(scenario.reference))
            if scenario.is_reference and observed.call_s < CONTROLS_UP_TO_S:
                wrong = controls(scenario, device, observed.pictures)
                run_record.controls[scenario.workload.name] = wrong
        verdicts = [judge_pictures(case, record.ssim, min_ssim)]
        if observed.borders_px:
            untiled = bench.active(scenario.reference).pictures
            contrast = seam_contrast(observed.pictures, untiled, observed.borders_px)
            verdicts.append(judge_seams(case, contrast))
    except ScenarioError as error:
        verdicts = [Verdict(scenario.id, SSIM.name, error.outcome, str(error))]
    judge(*verdicts)
