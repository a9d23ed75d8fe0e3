"""Print what becomes of every published pipeline, as a table in Markdown.

python -m tests.support.configurations [CLASS ...]
"""

from __future__ import annotations

import sys
import warnings

from tests.support.configurations import FULL_SIZE
from tests.support.configurations.trying import rows

HEAD = "| class | as published in | denoiser | bf16 takes, or the reason | seconds |"


def main(names: list[str]) -> None:
    """Try these classes, by default all, and print a row for each as it comes."""
    warnings.simplefilter("ignore")
    pipelines = FULL_SIZE["pipelines"]
    print(f"{HEAD}\n|---|---|---:|---|---:|", flush=True)
    answered, tried = 0, names or list(pipelines)
    for row in rows(tried):
        answered += not row.reason
        size = f"{row.denoiser / 1e9:.2f}B" if row.denoiser else ""
        answer = row.reason or f"{row.peak_bytes / 2**30:.2f} GiB"
        repository = pipelines[row.name]["repository"]
        print(f"| {row.name} | {repository} | {size} | {answer} | {row.seconds:.0f} |", flush=True)
    print(f"\n{answered} of {len(tried)} are answered.")


if __name__ == "__main__":
    main(sys.argv[1:])
