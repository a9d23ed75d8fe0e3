"""What a side installs: every kind of word, and the transformers that goes with it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from fixtures.commands.compare.requirements import (
    KNOWN_GOOD,
    UNDECLARED,
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


COMMIT = "0123456789abcdef0123456789abcdef01234567"
WHEEL = "diffusers-0.40.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("word", "version"),
    [
        ("diffusers==0.36.0", "0.36.0"),
        ("diffusers==0.36.0; python_version >= '3'", "0.36.0"),
        ("diffusers[torch]==0.36.0,!=0.37", "0.36.0"),
        (f"diffusers @ git+https://example.com/diffusers@{COMMIT}", None),
        (f"diffusers @ https://example.com/{WHEEL}", None),
    ],
)
def test_a_package_is_of_one_version_or_at_an_address(word: str, version: str | None) -> None:
    [source] = Requirements.parse([word]).given
    assert (source.text, source.name) == (word, "diffusers")
    assert source.version == (Version(version) if version else None)


def test_a_wheel_has_its_name_and_version(tmp_path: Path) -> None:
    wheel = tmp_path / WHEEL
    wheel.write_bytes(b"")
    requirements = Requirements.parse([str(wheel)])
    assert requirements.texts == [f"diffusers @ {wheel.as_uri()}"]
    assert requirements.transformers() == ["5.23.0"]


@pytest.mark.parametrize(
    ("version", "good"),
    [
        ("0.38.0.dev0", ["5.23.0", "4.57.6"]),
        ("0.40.0.dev0", ["5.23.0"]),
        ("1.0.0.dev0", ["5.23.0"]),
    ],
)
def test_a_checkout_has_its_version_and_goes_with_what_the_release_does(
    tmp_path: Path, version: str, good: list[str]
) -> None:
    folder = checkout(tmp_path / "my checkout", version)
    requirements = Requirements.parse([str(folder)])
    assert requirements.names == {"diffusers"}
    assert requirements.texts == [str(requirements)] == [f"diffusers @ {folder.as_uri()}"]
    assert requirements.transformers() == good


def test_a_checkout_is_named_with_its_commit(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    for words in ("init -q", "add .", "-c user.name=me -c user.email=me@example.com commit -qm x"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    requirements = Requirements.parse([str(folder)])
    assert re.fullmatch(rf"diffusers @ {folder.as_uri()} \([0-9a-f]{{12}}\)", str(requirements))
    assert requirements.texts == [f"diffusers @ {folder.as_uri()}"]


@pytest.mark.parametrize(
    "word",
    [
        *("", "diffusers", "diffusers=0.36", "diffusers>=0.36", "diffusers==0.36.*"),
        *("diffusers==0.36.0; odd", '"diffusers', "gone-1.0-py3-none-any.whl", "x" * 5000 + "/y"),
        *("~nobody-of-that-name/diffusers", "https://example.com/main.zip", "https://[1"),
    ],
)
def test_what_cannot_be_installed_is_refused_in_one_sentence(word: str) -> None:
    with pytest.raises(CommandError, match="is neither a version, a wheel nor a folder") as caught:
        Requirements.parse([word])
    assert "\n" not in str(caught.value)


def test_a_package_is_named_once() -> None:
    with pytest.raises(CommandError, match="diffusers is named twice"):
        Requirements.parse(["diffusers==0.36.0", "Diffusers==0.37.0"])


def test_a_path_needs_a_readable_package_that_states_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CommandError, match="does not state its version"):
        Requirements.parse([str(tmp_path)])
    odd = checkout(tmp_path / "odd", "newest")
    (tmp_path / "mine.whl").write_bytes(b"")
    for path in (odd, tmp_path / "mine.whl"):
        with pytest.raises(CommandError, match="cannot be read"):
            Requirements.parse([str(path)])

    def refuse(self: Path, **options: object) -> str:
        raise PermissionError(13, "Permission denied", str(self))

    folder = checkout(tmp_path / "mine")
    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(CommandError, match=r"cannot be read .*Permission denied"):
        Requirements.parse([str(folder)])


PIECES = (
    *("diffusers", " @ ", "git+", "https://", "file://", "/", "[", "]", "==", "0.36", ">=", ","),
    *("@main", ".whl", "#", "?", "%", "'", '"', "~", " ", ";", "\\", "-py3-none-any", ".."),
)


@settings(max_examples=100, deadline=None)
@given(
    st.text(st.characters(exclude_characters="\0"), max_size=60)
    | st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
)
def test_no_word_ends_in_a_stack_trace(word: str) -> None:
    try:
        said = str(Requirements.parse([word]))
    except CommandError as error:
        said = str(error)
    assert said


NEW, OLD, FTFY = "transformers==5.23.0", "transformers==4.57.6", UNDECLARED


@pytest.mark.parametrize(
    ("sides", "added"),
    [
        # All sides share their company where they can.
        (["diffusers==0.37.0", "diffusers==0.42.1"], [NEW, NEW]),
        (["diffusers==0.30.0", "diffusers==0.38.0"], [OLD, OLD]),
        (["diffusers==0.38.0", "diffusers==0.36.0", "diffusers==0.34.0"], [OLD, OLD, OLD]),
        # Else as many as can share that of the first.
        (["diffusers==0.31.0", "diffusers==0.42.1"], [OLD, NEW]),
        (["diffusers==0.30.0", "diffusers==0.38.0", "diffusers==0.42.1"], [OLD, OLD, NEW]),
        (["diffusers==0.42.1", "diffusers==0.38.0", "diffusers==0.30.0"], [NEW, NEW, OLD]),
        # What the user names is left alone.
        (["diffusers==0.38.0 transformers==4.57.3", "torch==2.12.0"], [None, None]),
    ],
)
def test_a_side_gets_the_company_that_it_is_known_to_work_with(
    sides: list[str], added: list[str | None]
) -> None:
    done = completed([Requirements.parse(side.split()) for side in sides])
    assert [side.added for side in done] == [
        (*((version,) if version else ()), FTFY) for version in added
    ]
    [side] = completed([Requirements.parse(["torch==2.12.0", "ftfy==6.2.0"])])
    assert side.added == ()


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
