"""The page says what was found, what shares a reason in one row, and what was not tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.studies.no_ops import __main__ as command
from fixtures.studies.no_ops.calls import calls
from fixtures.studies.no_ops.page import page
from fixtures.studies.no_ops.pipelines import by_class
from fixtures.studies.no_ops.trial import Found
from fixtures.techniques import CATALOGUE

VERSIONS = {"torch": "2.13.0", "diffusers": "0.42.1", "transformers": "5.23.0"}
PAGE = Path("docs/no-ops.md")


def test_the_page_says_what_was_found() -> None:
    found = {
        "FluxPipeline": [Found("slicing", "silent"), Found("tiling", "acts", "peak -10.0%")],
        "WanPipeline": [Found("slicing", "refused", "no | such"), Found("tiling", "warned", "hm")],
    }

    text = page(found, VERSIONS, {"a": "is slow", "b": "is late", "c": "is slow"})

    assert "| slicing | **nothing** | - |" in text
    assert "| tiling | acts | warns |" in text
    assert "| slicing | Wan | `no / such` |" in text
    assert "torch 2.13.0, diffusers 0.42.1" in text
    assert "## Not tried\n\n- `a`, `c`: is slow\n- `b`: is late\n\n" in text


def test_what_is_related_upstream_is_linked() -> None:
    found = {"FluxPipeline": [Found(call, "silent") for call in ("token_merging", "slicing")]}

    text = page(found, VERSIONS, {})

    link = "[tomesd#50](https://github.com/dbolya/tomesd/issues/50)"
    assert f"| token_merging | Flux | no upstream report known; related: {link} |" in text
    assert "| slicing | Flux | no upstream report known |" in text


def lacking(kind: str, name: str) -> str:
    return f"AttributeError: '{kind}' object has no attribute '{name}'"


def test_calls_and_classes_that_lack_the_same_share_a_row() -> None:
    found = {
        f"{kind}Pipeline": [
            Found("one", "refused", lacking(f"{kind}Model", "enable_cache")),
            Found("other", "refused", lacking(f"{kind}Model", "enable_cache")),
            Found("third", "refused", f"in the call, {lacking(kind, 'spatial_norm')}"),
            Found("last", "refused", "ValueError: no such cache"),
        ]
        for kind in ("Flux", "Wan")
    }

    text = page(found, VERSIONS, {})

    assert "| one, other | Flux, Wan | no `enable_cache` |" in text
    assert "| third | Flux, Wan | in the call, no `spatial_norm` |" in text
    assert "| last | Flux, Wan | `ValueError: no such cache` |" in text


def test_calls_of_other_classes_and_other_reasons_have_rows_of_their_own() -> None:
    found = {
        "FluxPipeline": [
            Found("one", "refused", lacking("Flux", "enable_cache")),
            Found("other", "refused", lacking("Flux", "enable_cache")),
            Found("third", "refused", lacking("Flux", "unet")),
        ],
        "WanPipeline": [
            Found("one", "refused", lacking("Wan", "enable_cache")),
            Found("other", "acts", "peak +1.0%"),
            Found("third", "silent"),
        ],
    }

    text = page(found, VERSIONS, {})

    assert "| one | Flux, Wan | no `enable_cache` |" in text
    assert "| other | Flux | no `enable_cache` |" in text
    assert "| third | Flux | no `unet` |" in text


def test_calls_that_act_alike_have_rows_of_their_own_in_the_order_of_classes() -> None:
    found = {
        f"{kind}Pipeline": [Found(call, "acts", f"peak {why}") for call in ("one", "other")]
        for kind, why in (("Wan", "+9%"), ("Flux", "+1%"))
    }

    _, _, text = page(found, VERSIONS, {}).partition("## What acts")

    rows = [line for line in text.splitlines() if "peak" in line]
    assert rows == [
        "| one | Wan | peak +9% |",
        "| one | Flux | peak +1% |",
        "| other | Wan | peak +9% |",
        "| other | Flux | peak +1% |",
    ]


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


def test_the_stored_page_has_every_class_and_every_call(request: pytest.FixtureRequest) -> None:
    text = (request.config.rootpath / PAGE).read_text("utf-8")
    head = (
        "| call | "
        + " | ".join(kind.removesuffix("Pipeline") for kind in by_class(every=False))
        + " |"
    )

    assert head in text
    for name in calls():
        assert f"\n| {name} | " in text, name


def test_the_stored_page_has_every_technique(request: pytest.FixtureRequest) -> None:
    text = (request.config.rootpath / PAGE).read_text("utf-8")
    _, _, rest = text.partition("## Not tried\n")
    not_tried, _, _ = rest.partition("\n## ")

    for technique in CATALOGUE:
        assert f"\n| {technique.id} | " in text or f"`{technique.id}`" in not_tried, technique.id
