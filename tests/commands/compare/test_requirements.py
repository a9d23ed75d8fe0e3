"""What a side installs: every kind of word, and the transformers that goes with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.commands.compare.requirements import (
    KNOWN_GOOD,
    Requirements,
    completed,
    constraints,
)
from fixtures.commands.errors import CommandError
from fixtures.settings import REPOSITORY

LINES = [
    "# comment",
    "torch==2.13.0",
    'transformers==5.23.0; python_version >= "3.11"',
    "tokenizers==0.23.3",
    "huggingface_hub==2.4.0",
    "diffusers==0.42.1  # the newest",
    "xformers==0.0.35",
    "numpy==2.4.6",
    "",
]


def checkout(folder: Path, version: str = "0.38.0.dev0") -> Path:
    package = folder / "src" / "diffusers"
    package.mkdir(parents=True)
    (folder / "setup.py").write_text("")
    (package / "__init__.py").write_text(f'__version__ = "{version}"\n')
    return folder


def test_several_packages_in_one_word_or_in_many() -> None:
    packages = Requirements.parse(["diffusers==0.36.0 torch==2.12.0"])
    assert packages == Requirements.parse(["diffusers==0.36.0", "torch==2.12.0"])
    assert packages.names == {"diffusers", "torch"}
    on_the_net = Requirements.parse(["diffusers @ git+https://example.com/d@main"])
    assert on_the_net.transformers() == [], "nothing is known of it"


@pytest.mark.parametrize(
    ("version", "good"),
    [
        ("0.35.0.dev0", ["4.57.6"]),
        ("0.36.0.dev0", ["5.23.0", "4.57.6"]),
        ("0.38.0.dev0", ["5.23.0", "4.57.6"]),
        ("0.40.0.dev0", ["5.23.0"]),
        ("1.0.0.dev0", ["5.23.0"]),
    ],
)
def test_a_checkout_has_its_version_and_goes_with_what_both_its_neighbours_do(
    tmp_path: Path, version: str, good: list[str]
) -> None:
    requirements = Requirements.parse([str(checkout(tmp_path / "my checkout", version))])
    assert requirements.names == {"diffusers"}
    assert requirements.replaceable
    assert requirements.folders == [tmp_path / "my checkout"]
    assert requirements.texts[0].startswith("diffusers @ file://")
    assert requirements.transformers() == good


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to install is named"),
        ([""], "nothing to install is named"),
        (["diffusers=0.36"], "'diffusers=0.36' is not a requirement, wheel or folder"),
        (["diffusers==0.36.0", "Diffusers==0.37.0"], "diffusers is named twice"),
        (["gone-1.0-py3-none-any.whl"], "there is no wheel"),
    ],
)
def test_what_cannot_be_installed_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        Requirements.parse(words)


def test_a_folder_needs_a_project_and_a_version(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="not a checkout of a package"):
        Requirements.parse([str(tmp_path)])
    (tmp_path / "pyproject.toml").write_text("")
    with pytest.raises(CommandError, match="does not state its version"):
        Requirements.parse([str(tmp_path)])


NEW, OLD, FTFY = "transformers==5.23.0", "transformers==4.57.6", "ftfy==6.3.1"


@pytest.mark.parametrize(
    ("base", "head", "added"),
    [
        # Both sides share their company where they can.
        ("diffusers==0.37.0", "diffusers==0.42.1", [[NEW], [NEW]]),
        ("diffusers==0.30.0 ftfy==6.2.0", "diffusers==0.38.0 ftfy==6.2.0", [[OLD], [OLD]]),
        ("diffusers==0.31.0 ftfy==6.2.0", "diffusers==0.42.1 ftfy==6.2.0", [[OLD], [NEW]]),
        # What the user names is left alone.
        ("diffusers==0.38.0 transformers==4.57.3", "torch==2.12.0", [[], []]),
        # What a pipeline of one side needs undeclared both have, and once.
        ("diffusers==0.36.0", "diffusers==0.42.1", [[NEW, FTFY], [NEW, FTFY]]),
        ("diffusers==0.35.2", "diffusers==0.36.0", [[NEW, FTFY], [NEW, FTFY]]),
        ("diffusers==0.30.0", "diffusers==0.42.1", [[OLD, FTFY], [NEW, FTFY]]),
    ],
)
def test_a_side_gets_the_company_that_it_is_known_to_work_with(
    base: str, head: str, added: list[list[str]]
) -> None:
    sides = completed([Requirements.parse([side]) for side in (base, head)])
    assert [list(side.added) for side in sides] == added


def test_every_release_from_0_30_on_has_known_company() -> None:
    for version in ("0.30.0", "0.33.1", "0.34.0", "0.35.2", "0.39.0", "0.40.0", "0.42.1", "1.0.0"):
        assert Requirements.parse([f"diffusers=={version}"]).transformers()
    assert not Requirements.parse(["diffusers==0.29.0"]).transformers()
    ours = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert f"transformers=={KNOWN_GOOD[0][0]}" in [line.partition(";")[0] for line in ours]


def test_constraints_are_dropped_for_what_is_chosen_and_for_what_follows_it() -> None:
    assert constraints(LINES, {"diffusers", "transformers"}) == [
        "torch==2.13.0",
        "xformers==0.0.35",
        "numpy==2.4.6",
    ]
    assert "xformers==0.0.35" not in constraints(LINES, {"torch"})
    assert len(constraints(LINES, set())) == 7
