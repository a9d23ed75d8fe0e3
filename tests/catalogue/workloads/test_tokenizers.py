"""Tokenizers that are made here: of bytes for CLIP and T5, of words as published ones count."""

from __future__ import annotations

import inspect

import pytest
import torch
from diffusers import HunyuanVideo15Pipeline, QwenImagePipeline
from transformers import T5TokenizerFast

from fixtures.catalogue.workloads import WORKLOADS
from fixtures.catalogue.workloads.calls import OTHER_PROMPT
from fixtures.catalogue.workloads.made_tokenizers import (
    T5_SPECIAL,
    byte_t5_tokenizer,
    byte_tokenizer,
    byte_vocabulary,
    word_tokenizer,
)
from fixtures.catalogue.workloads.sources import published
from fixtures.catalogue.workloads.twins import SMALL
from tests.support.small_workloads import BY_DEFAULT, small_workload

QWEN = word_tokenizer(**published("qwen-image")["tokenizer"])


@pytest.mark.parametrize("name", BY_DEFAULT)
def test_every_prompt_fits_every_tokenizer(name: str) -> None:
    pipeline = small_workload(name).load(torch.float32)
    tokenizers = [part for key, part in pipeline.components.items() if "tokenizer" in key]
    assert tokenizers
    for tokenizer in tokenizers:
        for prompt in (WORKLOADS[name].call.prompt, OTHER_PROMPT):
            assert len(tokenizer(prompt).input_ids) <= tokenizer.model_max_length


def test_clip_s_has_a_token_for_every_byte_the_published_ends_and_77_tokens() -> None:
    vocabulary = byte_vocabulary()
    assert len(vocabulary) == SMALL["sd15"].configs["text_encoder"]["vocab_size"]
    assert sorted(vocabulary.values()) == list(range(len(vocabulary)))
    tokenizer = byte_tokenizer()
    numbers = tokenizer("A horse, ünïcode!").input_ids
    assert (numbers[0], numbers[-1]) == (49406, 49407)
    assert all(number < 512 for number in numbers[1:-1])
    assert len(numbers) == 2 + len("ahorse,ünïcode!".encode())
    assert tokenizer.model_max_length == 77
    for prompt in ("", "a horse " * 40):
        padded = tokenizer(prompt, padding="max_length", max_length=77, truncation=True)
        assert len(padded.input_ids) == 77


@pytest.mark.parametrize("prompt", ["", "a horse", "ünïcode, 馬 and 🐎!"])
def test_t5_s_has_a_token_for_every_byte_and_the_published_special_ones(prompt: str) -> None:
    tokenizer = byte_t5_tokenizer(512)
    assert isinstance(tokenizer, T5TokenizerFast)
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id) == (0, 1, 2)
    assert len(tokenizer) == len(T5_SPECIAL) + 256
    assert tokenizer.model_max_length == 512
    numbers = tokenizer(prompt).input_ids
    assert numbers[-1] == 1
    assert all(2 < number < len(tokenizer) for number in numbers[:-1])
    assert len(numbers) == 1 + len(f" {prompt}".encode() if prompt else b"")
    assert tokenizer.decode(numbers, skip_special_tokens=True).removeprefix(" ") == prompt


def test_qwen_image_s_template_has_as_many_tokens_as_its_pipeline_drops() -> None:
    source = inspect.getsource(QwenImagePipeline.__init__)
    template = source.partition('self.prompt_template_encode = "')[2].partition('"\n')[0]
    before = template.encode().decode("unicode_escape").partition("{}")[0]
    assert "self.prompt_template_encode_start_idx = 34" in source
    assert len(QWEN(before).input_ids) == 34


def test_hunyuan_video_s_template_has_as_many_tokens_as_its_pipeline_drops() -> None:
    parameters = inspect.signature(HunyuanVideo15Pipeline._get_mllm_prompt_embeds).parameters
    system = parameters["system_message"].default
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "X"}]
    text = QWEN.apply_chat_template(messages, tokenize=False)
    assert len(QWEN(text.partition("X<|im_end|>")[0]).input_ids) == 108
    assert parameters["crop_start"].default == 108


def test_words_signs_and_digits_are_tokens_and_special_ones_have_their_places() -> None:
    assert len(QWEN("A cat, 24 frames!").input_ids) == 8  # A| cat|,| |2|4| frames|!
    assert QWEN("<|im_start|>a cat<|im_end|>").input_ids == [1, 3, 3, 2]
    assert QWEN("a", padding="max_length", max_length=3).input_ids == [3, 0, 0]
    tokenizer = word_tokenizer(
        ("<pad>", "<eos>", "<bos>"), 64, starts_with="<bos>", ends_with="<eos>"
    )
    assert tokenizer("a cat").input_ids == [2, 3, 3, 1]
