"""Mistakes in a catalogue of one's own: each is refused when it is read, with the name meant."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.catalogue.own import load
from fixtures.catalogue.techniques import CATALOGUE
from fixtures.catalogue.workloads import WORKLOADS
from tests.support.own_catalogue import TECHNIQUE, WORKLOAD, nothing_kept, refusal, written

TECHNIQUE_WITH = """
from fixtures.metrics.images import SSIM
from fixtures.metrics.latency_verdicts import LATENCY
from fixtures.metrics.peak_memory import PEAK_MEMORY
from fixtures.catalogue.techniques.registry import technique
from fixtures.catalogue.techniques.technique import less

SOUND = dict(family="mine", document="notes", activation_check=len, min_ssim=0.99)


# The mistake is in this line or the next one.
@technique(**{{**SOUND, **dict({})}})
def warmed(workload, device, steps=1):
    'Nothing but fp32, under another name.'
    yield workload.load(device.base_dtype).to(device.torch_device)
"""
WORKLOAD_WITH = """
from dataclasses import replace
from fixtures.catalogue.workloads.registry import workload
from fixtures.catalogue.workloads.storybook import CALL, source
SOUND = dict(kind="single", call=CALL)
workload("storybook-tiny", **{{**SOUND, **dict({})}})(lambda *_, values=True: source)
"""


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with nothing_kept(monkeypatch):
        yield


def refusal_at(line: str, path: Path) -> str:
    """The sentence by which a catalogue is refused, which names a line like this."""
    sentence = refusal(path)
    assert re.match(rf"--perf-catalogue {re.escape(str(path))}, line {line}: ", sentence)
    return sentence


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        # A name that nothing has.
        ("needs=('acelerator',)", "needs='acelerator': Input should be 'accelerator', "),
        ("documented_speed_up=2.0", "documented_speed_up=2.0: Unexpected keyword argument."),
        ("claims=[less(PEAK_MEMORY, component='vea')]", "component='vea': Input should be 'whole'"),
        ("claims=[less(PEAK_MEMORY, than='fp23')]", "'fp23' in claims, which does not exist there"),
        ("min_ssim={'': 0.9, 'sd51': 0.9}", "min_ssim, which does not exist there; did you mean"),
        ("settings={'sd51': {}}", "'sd51' in settings, which does not exist there; did you mean"),
        ("settings={'': {'step': 2}}", "got an unexpected keyword argument 'step'."),
        # A single value where several are taken.
        ("needs='accelerator'", "needs='accelerator': "),
        ("kinds=()", "kinds=(): "),
        # No claim that is compared, no release, no requirement.
        ("claims=[less('latency')]", "metric='latency': "),
        ("claims=['less memory']", "claims='less memory': "),
        ("claims=[less(SSIM)]", "less() compares PEAK_MEMORY, or LATENCY of the whole call, not"),
        ("since='abc'", "since='abc': Value error, Invalid version: 'abc'."),
        ("libraries=('foo bar!',)", "libraries='foo bar!': Value error, Expected "),
        # No such value.
        ("min_ssim=-1", "min_ssim=-1: Input should be greater than or equal to 0."),
        ("min_ssim=float('nan')", "min_ssim=nan: Input should be "),
        ("min_ssim={'': 0.9, 'sd15': 98}", "min_ssim.sd15=98: Input should be less than or equal"),
        ("activation_check=None", "activation_check=None: Input should be callable."),
        ("compiled='yes'", "compiled='yes': Input should be a valid boolean."),
    ],
)
def test_an_argument_of_a_technique_that_is_none_is_refused(
    tmp_path: Path, mistake: str, words: str
) -> None:
    assert words in refusal_at("(11|12)", written(tmp_path, TECHNIQUE_WITH.format(mistake)))


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("kind='singel'", "kind='singel': Input should be 'single', 'batch', "),
        ("hlaf='float16'", "hlaf='float16': Unexpected keyword argument."),
        ("call=replace(CALL, steps=0)", "call.steps=0: Input should be greater than 0."),
        ("without={'fp61': 'why'}", "'fp61' in without, which does not exist there; did you mean"),
    ],
)
def test_an_argument_of_a_workload_that_is_none_is_refused(
    tmp_path: Path, mistake: str, words: str
) -> None:
    assert words in refusal_at("[56]", written(tmp_path, WORKLOAD_WITH.format(mistake)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            WORKLOAD.replace("(weights, dtype, *, values=True)", "(weights)", 1),
            "'storybook-tiny' must be a function (weights, dtype, *, values=True): ",
        ),
        (
            TECHNIQUE.replace("device)", "device, steps)", 1),
            "must take a workload, a device and its settings: missing a required argument: 'steps'",
        ),
        (
            "from fixtures.catalogue.techniques.registry import technique\n"
            "@technique\ndef mine(): ...\n",
            "Unexpected positional argument.",
        ),
    ],
)
def test_what_cannot_be_called_is_refused(tmp_path: Path, text: str, words: str) -> None:
    assert words in refusal(written(tmp_path, text))


def test_names_may_be_declared_further_down_and_in_another_catalogue(tmp_path: Path) -> None:
    """And every argument may be what it may be."""
    arguments = (
        "min_ssim={'': 0, 'storybook-tiny': 1.0}, claims=(less(PEAK_MEMORY, than='besides'),), "
        "needs=['values'], timing_needs=(), kinds=('single', 'video'), since='', "
        "libraries=['torch>=2'], settings={'storybook-tiny': {'steps': 2}}, documented_speedup=2"
    )
    first = written(tmp_path, TECHNIQUE_WITH.format(arguments))
    second = written(tmp_path, WORKLOAD + TECHNIQUE.replace("warmed", "besides"), "own_others.py")
    load([first, second])
    warmed = CATALOGUE["warmed"]
    assert warmed.min_ssim_on("storybook-tiny") == 1.0
    assert [*filter(warmed.applies_to, WORKLOADS.values())] == [WORKLOADS["storybook-tiny"]]


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        ("SystemExit(3)", "raises SystemExit: 3; fix the file or drop the option."),
        ("ExceptionGroup('two', [ValueError()])", "raises ExceptionGroup: two (1 sub-exception);"),
        ("Mute()", "raises Mute: a message that cannot be printed; fix the file or"),
    ],
)
def test_whatever_a_catalogue_raises_is_one_sentence(
    tmp_path: Path, raised: str, words: str
) -> None:
    if "Group" in raised and sys.version_info < (3, 11):
        pytest.skip("Python 3.11 has the first groups of exceptions")
    mute = "class Mute(Exception):\n    def __str__(self):\n        raise self\n\n"
    path = written(tmp_path, f"{mute}raise {raised}\n")
    assert refusal(path).startswith(f"--perf-catalogue {path}, line 5 {words}")


def test_an_interrupt_while_a_catalogue_is_read_ends_the_command(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        load([written(tmp_path, "raise KeyboardInterrupt\n")])
