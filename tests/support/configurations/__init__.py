"""Folders of pipelines that hold configurations and tokenizers, and not one weight.

`pipelines.json` has the small components that the tests of diffusers use:
https://github.com/huggingface/diffusers/tree/main/tests/pipelines
`published.json` has those of published pipelines, full size, each with its source; a name such as
`sd15/unet` stands for the one in `fixtures/catalogue/workloads/published/`. Both are without what
is the default of a component's class.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from fixtures.catalogue.workloads.made_tokenizers import (
    byte_t5_tokenizer,
    byte_tokenizer,
    word_tokenizer,
)
from fixtures.catalogue.workloads.sources import published

Data = dict[str, Any]
"""Components by name, and pipelines by class."""
SMALL: Data = json.loads(Path(__file__).with_name("pipelines.json").read_text())
FULL_SIZE: Data = json.loads(Path(__file__).with_name("published.json").read_text())
CLASSES = tuple(SMALL["pipelines"])

OURS = ("diffusers", "transformers")
QWEN_TOKENS = {
    "<|vision_start|>": 151652,
    "<|vision_end|>": 151653,
    "<|image_pad|>": 151655,
    "<|video_pad|>": 151656,
}
SPECIAL = ("<pad>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", *QWEN_TOKENS)
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}{{ part['text'] }}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_pipeline(name: str, folder: Path, data: Data = SMALL) -> Path:
    """Write the folder of a class of pipelines as `save_pretrained` does, without its weights."""
    index: dict[str, Any] = {"_class_name": name, "_diffusers_version": "0.42.1"}
    pipeline = data["pipelines"][name]
    for part, written in pipeline.get("parts", pipeline).items():
        if isinstance(written, str) and written.startswith(("tokenizer ", "processor ")):
            made = _read_by_itself(written)
            made.save_pretrained(folder / part)
            index[part] = ["transformers", type(made).__name__]
        elif isinstance(written, str) and written in data["components"]:
            library, config, *_ = data["components"][written]
            # By its name alone: a class may be of a package that is not here.
            index[part] = [library, written.partition(" ")[0]]
            file = "scheduler_config.json" if "Scheduler" in written else "config.json"
            if "Processor" in written:  # it has a tokenizer
                file = "preprocessor_config.json"
                _write_qwen_tokenizer(folder / part)
            _write(folder / part / file, config_of(config))
        else:
            index[part] = written
    _write(folder / "model_index.json", index)
    return folder


def config_of(written: str | dict[str, Any]) -> Mapping[str, Any]:
    """A configuration, or the stored one of that name."""
    if not isinstance(written, str):
        return written
    workload, component = written.split("/")
    return published(workload)[component]


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def _write_qwen_tokenizer(folder: Path) -> None:
    """Of words, with the numbers by which the text encoder tells images from words."""
    _read_by_itself("tokenizer words").save_pretrained(folder)
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    vocabulary = content["model"]["vocab"]
    vocabulary |= QWEN_TOKENS
    for token in content["added_tokens"]:
        token["id"] = vocabulary[token["content"]]
    _write(path, content)


def _read_by_itself(written: str) -> Any:
    kind, _, name = written.partition(" ")
    if kind == "processor":
        return getattr(import_module("transformers"), name)()
    if name == "words":
        made = word_tokenizer(
            SPECIAL, 256, starts_with="<s>", ends_with="</s>", chat_template=TEMPLATE
        )
        made.eos_token = "</s>"  # what some pipelines pad with
        return made
    return byte_tokenizer(1000) if name == "clip" else byte_t5_tokenizer(256)
