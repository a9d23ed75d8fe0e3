"""What a word names, and for how long; whatever it is, it is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from fixtures.commands.compare.requirements import Requirements
from fixtures.commands.compare.sources import source_of
from fixtures.commands.errors import CommandError
from tests.commands.compare.test_requirements import checkout

COMMIT = "0123456789abcdef0123456789abcdef01234567"
WHEEL = "diffusers-0.40.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("word", "lasting"),
    [
        ("diffusers==0.36.0", "pinned"),
        ("diffusers==0.36.0; python_version >= '3'", "pinned"),
        ("diffusers[torch]==0.36.0,!=0.37", "pinned"),
        (f"diffusers @ git+https://example.com/diffusers@{COMMIT}", "pinned"),
        (f"diffusers @ git+https://example.com/diffusers.git@{COMMIT}#subdirectory=src", "pinned"),
        ("diffusers", "moving"),
        ("diffusers>=0.36", "moving"),
        ("diffusers==0.36.*", "moving"),
        ("diffusers @ git+https://example.com/diffusers", "moving"),
        ("diffusers @ git+https://example.com/diffusers@main", "moving"),
        (f"diffusers @ git+https://example.com/diffusers@{COMMIT[:10]}", "moving"),
        ("diffusers@git+file:///somewhere@main", "moving"),
        ("diffusers @ https://example.com/archive/main.zip", "replaceable"),
        (f"diffusers @ https://example.com/{WHEEL}", "replaceable"),
        (f"https://example.com/{WHEEL}", "replaceable"),
    ],
)
def test_for_how_long_it_means_the_same(word: str, lasting: str) -> None:
    found = source_of(word)
    assert (found.name, found.lasting) == ("diffusers", lasting)


@pytest.mark.parametrize(
    "address",
    [
        f"https://example.com/wheels/{WHEEL}",
        f"http://example.com/{WHEEL}#sha256=0123",
        f"https://example.com/{WHEEL}?token=x",
        "https://example.com/diffusers-0.40.0%2Bcpu-py3-none-any.whl",
    ],
)
def test_a_wheels_address_has_the_name_and_version_of_the_wheel(address: str) -> None:
    found = source_of(address)
    assert found.text == f"diffusers @ {address}"
    assert found.version is not None
    assert found.version.release == (0, 40, 0)
    assert Requirements.parse([address]).transformers() == ["5.23.0"]


def test_a_file_by_its_address_is_the_file(tmp_path: Path) -> None:
    wheel, folder = tmp_path / WHEEL, checkout(tmp_path / "my checkout")
    wheel.write_bytes(b"")
    for path, version in ((wheel, "0.40.0"), (folder, "0.38.0.dev0")):
        by_path = source_of(str(path))
        assert by_path.lasting == "replaceable"
        assert by_path.version == Version(version)
        assert source_of(path.as_uri()) == by_path
        assert source_of(f"diffusers @ {path.as_uri()}") == by_path
    archive = tmp_path / "diffusers.tar.gz"
    archive.write_bytes(b"")
    assert source_of(f"diffusers @ {archive.as_uri()}").lasting == "replaceable"
    unknown = tmp_path / "unknown"
    unknown.mkdir()
    (unknown / "pyproject.toml").write_text("")
    named = source_of(f"diffusers @ {unknown.as_uri()}")
    assert (named.version, named.lasting) == (None, "replaceable"), "it need not state its version"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("https://example.com/main.zip", "does not say of which package it is; give NAME @ https"),
        ("git+https://example.com/diffusers@main", "does not say of which package it is; give"),
        ("https://example.com/mine.whl", "mine.whl is not the name of a wheel"),
        (f"file:///nowhere/{WHEEL}", "there is no wheel /nowhere/"),
        ("diffusers @ file:///nowhere", "there is no folder /nowhere; give the path of a checkout"),
        ("https://[1", "cannot be read"),
        ("x" * 5000 + "/y", "is not a requirement, wheel or folder"),
        ("x" * 5000 + ".whl", "cannot be read|there is no wheel"),
        ("~nobody-of-that-name/diffusers", "is not a requirement, wheel or folder"),
        ("diffusers==0.36.0; odd", "is not a requirement"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(word: str, said: str) -> None:
    with pytest.raises(CommandError, match=said) as caught:
        source_of(word)
    assert "\n" not in str(caught.value)


def test_a_package_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, **options: object) -> str:
        raise PermissionError(13, "Permission denied", str(self))

    folder = checkout(tmp_path / "mine")
    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(CommandError, match=r"cannot be read .*Permission denied"):
        source_of(str(folder))


PIECES = (
    *("diffusers", " @ ", "git+", "https://", "file://", "/", "[", "]", "==", "0.36", ">=", ","),
    *("@main", ".whl", "#", "?", "%", "'", '"', "~", " ", ";", "\\", "-py3-none-any", ".."),
)


@settings(max_examples=150, deadline=None)
@given(
    st.text(st.characters(exclude_characters="\0"), max_size=60)
    | st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
)
def test_no_word_ends_in_a_stack_trace(word: str) -> None:
    try:
        found = Requirements.parse([word])
    except CommandError as error:
        said = str(error)
    else:
        said = str(found)
    assert said
