"""The tokenizer knows every word of the world and refuses none."""

from __future__ import annotations

import random

import pytest
from transformers import CLIPTokenizer

from fixtures.workloads.storybook import PIPELINE_FOLDER
from fixtures.workloads.storybook.training.captions import caption
from fixtures.workloads.storybook.training.tokens import POSITIONS, world_tokenizer, world_words
from fixtures.workloads.storybook.training.world import scene_number


@pytest.mark.parametrize("word", world_words())
def test_a_word_of_the_world_is_one_token_and_comes_back(word: str) -> None:
    tokenizer = world_tokenizer()
    ids = tokenizer(word).input_ids
    assert len(ids) == 3, "start, word, end"
    assert tokenizer.decode(ids, skip_special_tokens=True).strip() == word


def test_captions_come_back_word_by_word() -> None:
    tokenizer = world_tokenizer()
    for index in range(200):
        text = caption(scene_number(5, index), random.Random(index))
        back = tokenizer.decode(tokenizer(text).input_ids, skip_special_tokens=True)
        assert back.replace(" ", "") == text.replace(" ", "")


def test_every_caption_fits_the_positions() -> None:
    tokenizer = world_tokenizer()
    texts = [caption(scene_number(5, i), random.Random(i)) for i in range(500)]
    assert max(len(ids) for ids in tokenizer(texts).input_ids) <= POSITIONS


def test_a_strange_word_falls_into_pieces_that_spell_it() -> None:
    tokenizer = world_tokenizer()
    back = tokenizer.decode(tokenizer("Knight, Zürich!").input_ids, skip_special_tokens=True)
    assert back.replace(" ", "") == "knight,zürich!"


def test_the_tokenizer_of_the_committed_folder_is_the_worlds() -> None:
    committed = CLIPTokenizer.from_pretrained(PIPELINE_FOLDER / "tokenizer")
    text = " ".join(world_words())
    assert committed(text).input_ids == world_tokenizer()(text).input_ids
