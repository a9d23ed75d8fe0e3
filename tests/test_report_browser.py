"""The page in a browser: filter, sort, open, theme; no error, and nothing fetched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.report.page import page
from tests.test_report_page import some_run

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

pytestmark = pytest.mark.skipif(
    FOUND is None, reason="no Chromium on the PATH: install it with 'apt-get install chromium'"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=FOUND, args=list(QUIET))
        yield launched
        launched.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """The page, opened; afterwards nothing was said on the console and nothing was fetched."""
    file = tmp_path / "report.html"
    file.write_text(page(some_run(), strict=False), encoding="utf-8")
    tab = browser.new_page()
    said: list[str] = []
    fetched: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: fetched.append(request.url))
    tab.goto(file.as_uri())
    yield tab
    assert said == []
    assert [url for url in fetched if not url.startswith("data:")] == [file.as_uri()]
    tab.close()


def shown(tab: Any) -> list[str]:
    return [body.get_attribute("data-name") for body in tab.locator("tbody:visible").all()]


def test_filters_leave_what_fits_and_count_it(opened: Any) -> None:
    assert shown(opened) == ["storybook-fp32", "storybook-fp16", "storybook-tf32"]
    opened.locator("#status").select_option("regression")
    assert shown(opened) == ["storybook-fp16"]
    assert opened.locator("#shown").inner_text() == "1 of 3 scenarios"
    opened.locator("#status").select_option("")
    opened.locator("#family").select_option("attention")
    assert shown(opened) == ["storybook-tf32"]
    opened.locator("#family").select_option("")
    opened.get_by_label("Find").fill("FP3")
    assert shown(opened) == ["storybook-fp32"]


def test_a_click_sorts_by_figure_and_another_turns_it_and_the_rest_stays_last(opened: Any) -> None:
    memory = opened.get_by_role("button", name="peak memory")
    memory.click()
    assert shown(opened) == ["storybook-fp16", "storybook-fp32", "storybook-tf32"]
    memory.click()
    assert shown(opened) == ["storybook-fp32", "storybook-fp16", "storybook-tf32"]
    assert opened.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"


def test_a_scenario_opens_and_closes_by_keyboard(opened: Any) -> None:
    opener = opened.get_by_role("button", name="fp16")
    detail = opened.get_by_text("fp16 says why")
    assert not detail.is_visible()
    opener.focus()
    opened.keyboard.press("Enter")
    assert detail.is_visible()
    assert opener.get_attribute("aria-expanded") == "true"
    opened.keyboard.press("Enter")
    assert not detail.is_visible()


def test_the_slider_uncovers_the_reference(opened: Any) -> None:
    opened.get_by_role("button", name="fp16").click()
    slider = opened.get_by_role("slider", name="picture 2")
    over = opened.get_by_role("img", name="fp16, picture 2")
    widths = []
    for value in ("100", "0"):
        slider.fill(value)
        widths.append(over.evaluate("image => getComputedStyle(image).clipPath"))
    assert "100%" not in widths[0]
    assert "100%" in widths[1]


def test_the_theme_turns_and_turns_back(opened: Any) -> None:
    def back() -> str:
        return str(opened.evaluate("getComputedStyle(document.body).backgroundColor"))

    first = back()
    opened.get_by_role("button", name="Light or dark").click()
    assert back() != first
    opened.get_by_role("button", name="Light or dark").click()
    assert back() == first


def test_a_narrow_screen_scrolls_the_table_and_not_the_page(opened: Any) -> None:
    opened.set_viewport_size({"width": 360, "height": 700})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360
