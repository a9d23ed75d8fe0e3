"""The technique really is in effect, and leaving it restores everything."""

from fixtures.measurement import Bench, ScenarioError
from fixtures.plugin import Judge
from fixtures.scenarios import Scenario
from fixtures.verdicts import Outcome, Verdict


def test_activation(scenario: Scenario, bench: Bench, judge: Judge) -> None:
    """A technique that silently does nothing has SSIM 1.0 and must not pass for it."""
    failure = None
    try:
        observation = bench.active(scenario)
    except ScenarioError as error:
        failure = Verdict(scenario.id, "activation", error.outcome, str(error))
    if failure:
        judge(failure)
    elif observation.left_behind:
        sentence = f"{scenario.id}: leaving it did not restore {'; '.join(observation.left_behind)}"
        judge(Verdict(scenario.id, "activation", Outcome.BROKEN, sentence))
    elif observation.leak:
        sentence = f"{scenario.id}: {observation.leak}"
        judge(Verdict(scenario.id, "activation", Outcome.BROKEN, sentence))
    else:
        judge(Verdict(scenario.id, "activation", Outcome.PASS, f"{scenario.id}: in effect"))
