"""`python -m tests.support.published` prints docs/evidence.md; `--output` writes it there."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from tests.support.published.page import page


def _tell(done: int, of: int) -> None:
    print(f"{done}/{of}", file=sys.stderr, flush=True)


def main() -> None:
    """Compare everything."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.published", description=__doc__)
    parser.add_argument("--output", type=Path, help="a file in the place of the terminal")
    output: Path | None = parser.parse_args().output
    warnings.simplefilter("ignore")
    text = page(_tell)
    if output is None:
        print(text)
    else:
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
