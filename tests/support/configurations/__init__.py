"""Folders of pipelines that hold configurations and tokenizers, and not one weight.

`pipelines.json` has the small components that the tests of diffusers use, without what is their
default: https://github.com/huggingface/diffusers/tree/main/tests/pipelines
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from fixtures.workloads.byte_tokenizer import byte_t5_tokenizer, byte_tokenizer
from fixtures.workloads.word_tokenizer import word_tokenizer

PUBLISHED: dict[str, Any] = json.loads(Path(__file__).with_name("pipelines.json").read_text())
CLASSES = tuple(PUBLISHED["pipelines"])

OURS = ("diffusers", "transformers")
SPECIAL = ("<pad>", "<s>", "</s>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}{{ part['text'] }}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_pipeline(name: str, folder: Path) -> Path:
    """Write the folder of a class of pipelines as `save_pretrained` does, without its weights."""
    index: dict[str, Any] = {"_class_name": name, "_diffusers_version": "0.42.1"}
    for part, written in PUBLISHED["pipelines"][name].items():
        if isinstance(written, str) and written.startswith(("tokenizer ", "processor ")):
            made = _read_by_itself(written)
            made.save_pretrained(folder / part)
            index[part] = ["transformers", type(made).__name__]
        elif isinstance(written, str) and written in PUBLISHED["components"]:
            library, config = PUBLISHED["components"][written]
            found = class_of(library, written)
            index[part] = [library, found.__name__]
            file = "config.json" if library == "transformers" else found.config_name
            _write(folder / part / file, config)
        else:
            index[part] = written
    _write(folder / "model_index.json", index)
    return folder


def class_of(library: str, written: str) -> Any:
    """The class of a component: its name comes before the number by which equals are told apart."""
    package = library if library in OURS else f"diffusers.pipelines.{library}"
    return getattr(import_module(package), written.partition(" ")[0])


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def _read_by_itself(written: str) -> Any:
    kind, _, name = written.partition(" ")
    if kind == "processor":
        return getattr(import_module("transformers"), name)()
    if name == "words":
        return word_tokenizer(
            SPECIAL, 256, starts_with="<s>", ends_with="</s>", chat_template=TEMPLATE
        )
    return byte_tokenizer(1000) if name == "clip" else byte_t5_tokenizer(256)
