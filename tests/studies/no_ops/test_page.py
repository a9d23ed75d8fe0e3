"""The page says what each call does where, what was not tried, and the details why."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.studies.no_ops import __main__ as command
from fixtures.studies.no_ops.calls import calls
from fixtures.studies.no_ops.page import details, page
from fixtures.studies.no_ops.pipelines import by_class
from fixtures.studies.no_ops.trial import Found
from fixtures.techniques import CATALOGUE

VERSIONS = {"torch": "2.13.0", "diffusers": "0.42.1", "transformers": "5.23.0"}
PAGE = Path("docs/no-ops.md")
RESULTS = {
    "FluxPipeline": [
        Found("offload", "acts", "copies +9%"),
        Found("slicing", "silent"),
        Found("tiling", "acts", "peak -10.0%"),
    ],
    "WanPipeline": [
        Found("offload", "acts", "copies +1%"),
        Found("slicing", "refused", "no | such `thing`"),
        Found("tiling", "warned", "hm"),
    ],
}


def test_the_page_says_what_each_call_does_where() -> None:
    text = page(RESULTS, VERSIONS, {"a": "is slow", "b": "is late", "c": "is slow"})

    assert "pipelines of Flux and Wan on the" in text
    assert "These act on every class: `offload`." in text
    assert "\n| `slicing` | - | Flux | Wan |\n| `tiling` | Flux | Wan (warns) | - |\n" in text
    assert "`tiling` on Wan warns: `hm`" in text
    assert "torch 2.13.0, diffusers 0.42.1" in text
    assert text.endswith("## Not tried\n\n- `a`, `c`: is slow\n- `b`: is late\n")


def test_the_details_have_a_row_for_each_call_and_class() -> None:
    rows = details(RESULTS).splitlines()

    assert len(rows) == 2 + 6
    assert "| tiling | Flux | acts | peak -10.0% |" in rows
    assert "| slicing | Wan | refused | no / such 'thing' |" in rows


def test_most_classes_are_the_others_and_calls_that_do_the_same_share_a_row() -> None:
    kinds = ("Flux", "Wan", "LTX2", "Chroma", "ZImage")
    results = {
        f"{kind}Pipeline": [
            Found(call, "silent" if kind == "Flux" else "refused") for call in ("one", "other")
        ]
        for kind in kinds
    }

    assert "\n| `one`, `other` | - | Flux | the others |\n" in page(results, VERSIONS, {})


def test_what_is_related_upstream_is_linked() -> None:
    results = {"FluxPipeline": [Found(call, "silent") for call in ("token_merging", "slicing")]}

    link = "[tomesd#50](https://github.com/dbolya/tomesd/issues/50)"
    text = page(results, VERSIONS, {})
    assert f"nothing silently. Related: `token_merging` ({link}).\n" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pipeline", "Nothing"], "no workload runs 'Nothing'"),
        (["--jobs", "0"], "take 1 or more"),
    ],
)
def test_what_cannot_be_tried_is_one_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(arguments) == 2
    assert said in capsys.readouterr().err


def test_the_stored_page_has_every_class_call_and_technique(
    request: pytest.FixtureRequest,
) -> None:
    text = (request.config.rootpath / PAGE).read_text("utf-8")

    for kind in by_class(every=False):
        assert kind.removesuffix("Pipeline") in text, kind
    for name in (*calls(), *(technique.id for technique in CATALOGUE)):
        assert f"`{name}`" in text, name
