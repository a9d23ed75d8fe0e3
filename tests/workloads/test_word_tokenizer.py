"""A tokenizer of words counts as the published ones do."""

from __future__ import annotations

import inspect

from diffusers import HunyuanVideo15Pipeline, QwenImagePipeline

from fixtures.workloads.word_tokenizer import (
    MISTRAL_CHAT,
    QWEN_CHAT,
    SENTENCE_TOKENS,
    word_tokenizer,
)

QWEN = word_tokenizer(**QWEN_CHAT)


def test_qwen_images_template_has_as_many_tokens_as_its_pipeline_drops() -> None:
    source = inspect.getsource(QwenImagePipeline.__init__)
    template = source.partition('self.prompt_template_encode = "')[2].partition('"\n')[0]
    before = template.encode().decode("unicode_escape").partition("{}")[0]
    assert "self.prompt_template_encode_start_idx = 34" in source
    assert len(QWEN(before).input_ids) == 34


def test_hunyuan_videos_template_has_as_many_tokens_as_its_pipeline_drops() -> None:
    parameters = inspect.signature(HunyuanVideo15Pipeline._get_mllm_prompt_embeds).parameters
    system = parameters["system_message"].default
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "X"}]
    text = QWEN.apply_chat_template(messages, tokenize=False)
    assert len(QWEN(text.partition("X<|im_end|>")[0]).input_ids) == 108
    assert parameters["crop_start"].default == 108


def test_words_signs_and_digits_are_tokens() -> None:
    assert len(QWEN("A cat, 24 frames!").input_ids) == 8  # A| cat|,| |2|4| frames|!


def test_special_tokens_have_their_places_and_all_words_one_number() -> None:
    numbers = QWEN("<|im_start|>a cat<|im_end|>").input_ids
    assert numbers == [1, 3, 3, 2]
    assert QWEN("a", padding="max_length", max_length=3).input_ids == [3, 0, 0]


def test_mistrals_template_takes_parts_of_a_message() -> None:
    tokenizer = word_tokenizer(**MISTRAL_CHAT)
    messages = [
        {"role": "system", "content": [{"type": "text", "text": "be brief"}]},
        {"role": "user", "content": [{"type": "text", "text": "a cat"}]},
    ]
    text = tokenizer.apply_chat_template(messages, tokenize=False)
    assert text == "<s>[SYSTEM_PROMPT]be brief[/SYSTEM_PROMPT][INST]a cat[/INST]"


def test_a_text_can_start_and_end_with_a_token() -> None:
    tokenizer = word_tokenizer(SENTENCE_TOKENS, 64, starts_with="<bos>", ends_with="<eos>")
    assert tokenizer("a cat").input_ids == [2, 3, 3, 1]
