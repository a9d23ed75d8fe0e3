"""Words as tokens: the counts that pipelines rely on, special tokens, padding, and templates."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from fixtures.workloads.chat_templates import CHAT_ML
from fixtures.workloads.word_tokenizer import WORD_ID, word_tokenizer

SPECIAL = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}


def qwen(**options: Any) -> Any:
    return word_tokenizer(SPECIAL, "<|endoftext|>", model_max_length=1000, **options)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a cat", 2),
        ("A cat, sitting!", 5),
        ("in 2024", 6),  # a space, and the digits one by one
        ("line\n\nline", 3),
        ("a  cat", 3),
        ("object's", 3),
        ("一只猫", 1),
        ("", 0),
    ],
)
def test_words_digits_and_runs_of_signs_are_tokens(text: str, tokens: int) -> None:
    assert qwen()(text)["input_ids"] == [WORD_ID] * tokens


def test_special_tokens_have_their_published_numbers_inside_of_a_text() -> None:
    assert qwen()("<|im_start|>user\n")["input_ids"] == [151644, WORD_ID, WORD_ID]


def test_the_template_of_qwen_image_has_as_many_tokens_as_its_pipeline_drops() -> None:
    diffusers = pytest.importorskip("diffusers", minversion="0.35")
    parts = dict.fromkeys(("scheduler", "vae", "text_encoder", "tokenizer", "transformer"))
    pipeline = diffusers.QwenImagePipeline(**parts)
    before, _ = pipeline.prompt_template_encode.split("{}")
    assert len(qwen()(before)["input_ids"]) == pipeline.prompt_template_encode_start_idx == 34


def test_the_template_of_hunyuan_video_has_as_many_tokens_as_its_pipeline_drops() -> None:
    diffusers = pytest.importorskip("diffusers", minversion="0.36")
    encode = diffusers.HunyuanVideo15Pipeline._get_mllm_prompt_embeds
    defaults = inspect.signature(encode).parameters
    said = [
        {"role": "system", "content": defaults["system_message"].default},
        {"role": "user", "content": ""},
    ]
    asked = qwen(chat_template=CHAT_ML).apply_chat_template(said, return_dict=True)["input_ids"]
    # What ends the message of the user comes after the prompt.
    assert len(asked) - 2 == defaults["crop_start"].default == 108


def test_the_shorter_text_is_padded_on_the_asked_side() -> None:
    for side, mask in (("right", [1, 1, 0]), ("left", [0, 1, 1])):
        tokens = qwen(padding_side=side)(["a cat", "a, b"], padding=True, return_tensors="pt")
        assert tokens.attention_mask.tolist() == [mask, [1, 1, 1]]
        padded = tokens.input_ids[tokens.attention_mask == 0]
        assert torch.equal(padded, torch.tensor([SPECIAL["<|endoftext|>"]]))


def test_a_text_may_begin_and_end_with_special_tokens_and_is_cut_within_them() -> None:
    ends = {"begin": "<|im_start|>", "end": "<|im_end|>"}
    assert qwen(**ends)("a cat")["input_ids"] == [151644, WORD_ID, WORD_ID, 151645]
    cut = qwen(**ends)("a cat " * 50, max_length=4, truncation=True)["input_ids"]
    assert cut == [151644, WORD_ID, WORD_ID, 151645]
