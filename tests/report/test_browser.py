"""The page in a browser: filter, sort, open, copy, theme; no error, and nothing fetched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures.records.images import encoded
from fixtures.report.comparison import Comparison
from fixtures.report.page import page
from tests.report.test_page import REFRESH, fp16, illustrated_run
from tests.support.runs import run_record

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FOUND = next((path for name in BROWSERS if (path := shutil.which(name))), None)
MISSING = "no Chromium on the PATH: install it with 'apt-get install chromium'"
FLAGS = [
    *("--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
pytestmark = [pytest.mark.long, pytest.mark.skipif(FOUND is None, reason=MISSING)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=FOUND, args=FLAGS)
        yield launched
        launched.close()


@contextmanager
def visited(browser: Browser, file: Path) -> Iterator[Page]:
    """The page in a tab; afterwards nothing was said on the console and nothing was fetched."""
    tab = browser.new_page()
    said: list[str] = []
    fetched: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: fetched.append(request.url))
    tab.goto(file.as_uri())
    yield tab
    assert said == []
    assert {url for url in fetched if not url.startswith("data:")} == {file.as_uri()}
    tab.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    file = tmp_path / "report.html"
    file.write_text(page(illustrated_run(), strict=False), encoding="utf-8")
    with visited(browser, file) as tab:
        yield tab


def shown(tab: Page) -> list[str | None]:
    return [
        body.get_attribute("data-name") for body in tab.locator("#scenarios > tbody:visible").all()
    ]


def test_filters_leave_what_fits_and_count_it(opened: Page) -> None:
    tf32 = opened.get_by_text("storybook-tf32")
    assert shown(opened) == ["storybook-fp16", "storybook-fp32", "storybook-bf16"]
    assert not tf32.is_visible()
    opened.locator("#status").select_option("regression")
    assert shown(opened) == ["storybook-fp16"]
    assert opened.locator("#shown").inner_text() == "1 of 3 scenarios"
    opened.locator("#status").select_option("")
    opened.locator("#family").select_option("attention")
    assert shown(opened) == []
    assert tf32.is_visible(), "the unsupported are unfolded where they are what is looked for"
    opened.locator("#family").select_option("")
    opened.get_by_label("Find").fill("FP3")
    assert shown(opened) == ["storybook-fp32"]


def test_a_click_sorts_by_figure_or_turns_the_theme_and_another_turns_it_back(opened: Page) -> None:
    """What has no figure stays last."""
    memory = opened.get_by_role("button", name="peak memory")
    memory.click()
    assert shown(opened) == ["storybook-fp16", "storybook-fp32", "storybook-bf16"]
    memory.click()
    assert shown(opened) == ["storybook-fp32", "storybook-fp16", "storybook-bf16"]
    assert opened.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    colors = []
    for _ in range(3):
        colors.append(opened.evaluate("getComputedStyle(document.body).backgroundColor"))
        opened.get_by_role("button", name="Toggle theme").click()
    assert colors[0] == colors[2] != colors[1]


def test_a_failed_scenario_is_open_at_first_and_closes_and_opens_by_keyboard(opened: Page) -> None:
    opener = opened.get_by_role("button", name="fp16", exact=True)
    detail = opened.locator("[data-name=storybook-fp16] .detail")
    assert detail.is_visible()
    assert opened.locator(".detail:visible").count() == 1
    opener.focus()
    for shows in (False, True):
        opened.keyboard.press("Enter")
        assert detail.is_visible() == shows
        assert opener.get_attribute("aria-expanded") == str(shows).lower()


@pytest.mark.parametrize("clipboard", [True, False])
def test_a_command_is_copied_by_keyboard_and_the_button_says_so(
    opened: Page, *, clipboard: bool
) -> None:
    """With and without a clipboard that scripts may write to."""
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.evaluate("navigator.clipboard.writeText('something else')")
    if not clipboard:
        opened.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(0); }")
    button = opened.get_by_role("button", name="Copy").first
    button.focus()
    opened.keyboard.press("Enter")
    opened.get_by_role("button", name="Copied").wait_for()
    assert opened.evaluate("navigator.clipboard.readText()") == REFRESH
    opened.get_by_role("button", name="Copy").first.wait_for()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_verdict_is_whole_and_on_a_phone_a_scenario_is_a_card_with_its_first_figures(
    opened: Page, width: int
) -> None:
    opened.set_viewport_size({"width": width, "height": 800})
    for name in ("fp16", "fp32"):
        row = opened.locator(f"[data-name=storybook-{name}] > tr").first
        for cell in (
            row.locator(".status"),
            *row.locator("[data-label*=memory], [data-label=latency]").all(),
        ):
            box = cell.bounding_box()
            assert box is not None, "it is visible"
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth")
    closed = opened.locator("[data-name=storybook-fp32] [data-label='vs fp32']")
    assert closed.is_visible() == (width == 1280)
    opened.get_by_role("button", name="fp32", exact=True).click()
    assert closed.is_visible()


def test_the_slider_uncovers_base(browser: Browser, tmp_path: Path) -> None:
    base, head = (
        run_record(fp16(images=encoded(np.full((2, 16, 16, 3), value)))) for value in (0.2, 0.8)
    )
    compared = Comparison(("base", "head"), base, (), (), 0)
    file = tmp_path / "report.html"
    file.write_text(page(head, strict=False, comparison=compared), encoding="utf-8")
    with visited(browser, file) as tab:
        slider = tab.get_by_role("slider", name="image 2")
        over = tab.get_by_role("img", name="head, image 2")
        widths = []
        for value in ("100", "0"):
            slider.fill(value)
            widths.append(over.evaluate("image => getComputedStyle(image).clipPath"))
    assert "100%" not in widths[0]
    assert "100%" in widths[1]


@pytest.mark.parametrize("where", ["beside the name", "in the detail"])
def test_a_picture_opens_large_and_a_click_closes_it(opened: Page, where: str) -> None:
    name = "FLIP error from fp32, image 2 of storybook-fp16"
    if where == "beside the name":
        name = "fp16, image 1 of storybook-fp16"
        opened.get_by_role("button", name="fp16", exact=True).click()
    small = opened.get_by_role("button", name=name).first
    small.click()
    large = opened.get_by_role("dialog")
    assert large.get_by_text(name).is_visible()
    drawn, thumb = large.locator("img"), small.locator("img")
    assert drawn.get_attribute("src") == thumb.get_attribute("src")
    sizes = [image.bounding_box() for image in (drawn, thumb)]
    assert sizes[0] is not None
    assert sizes[1] is not None
    assert sizes[0]["width"] > 2 * sizes[1]["width"]
    drawn.click()
    assert opened.get_by_role("dialog").count() == 0
    detail = opened.locator("[data-name=storybook-fp16] .detail")
    assert detail.is_visible() == (where == "in the detail"), "the row stays as it was"
    small.focus()
    opened.keyboard.press("Enter")
    opened.get_by_role("button", name="Close").click()
    assert opened.get_by_role("dialog").count() == 0
