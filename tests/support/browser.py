"""A headless Chromium for the tests of the pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FOUND = next((path for name in BROWSERS if (path := shutil.which(name))), None)
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
MISSING = "no Chromium on the PATH: install it with 'apt-get install chromium'"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Playwright's browser.

    Raises:
        ImportError: if playwright is not installed.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=FOUND, args=list(QUIET))
        yield launched
        launched.close()
