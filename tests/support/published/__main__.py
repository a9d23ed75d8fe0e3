"""`python -m tests.support.published` prints the table of unseen figures, some seven minutes."""

from __future__ import annotations

import warnings

from tests.support.published.rows import print_rows

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print_rows()
