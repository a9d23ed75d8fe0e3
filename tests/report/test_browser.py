"""The page in a browser: filter, sort, open, theme; no error, and nothing fetched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.report.page import page
from tests.benchmarks.report import large_run
from tests.report.test_page import illustrated_run
from tests.support.browser import FOUND, MISSING, chromium
from tests.support.running import run_suite

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.long, pytest.mark.skipif(FOUND is None, reason=MISSING)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with chromium() as launched:
        yield launched


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
    assert [url for url in fetched if not url.startswith("data:")] == [file.as_uri()]
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


def test_a_long_name_beside_an_image_stays_in_its_cell(opened: Page) -> None:
    opened.set_viewport_size({"width": 500, "height": 800})
    name = opened.locator("tbody:has(.thumb) td.words > button").first
    name.evaluate("button => button.textContent = 'channels_last_traced_unet'")
    inside, cell = (one.bounding_box() for one in (name, name.locator("..")))
    assert inside is not None
    assert cell is not None
    assert inside["x"] + inside["width"] <= cell["x"] + cell["width"]


def test_a_click_sorts_by_figure_and_another_turns_it_and_the_rest_stays_last(opened: Page) -> None:
    memory = opened.get_by_role("button", name="peak memory")
    memory.click()
    assert shown(opened) == ["storybook-fp16", "storybook-fp32", "storybook-tf32"]
    memory.click()
    assert shown(opened) == ["storybook-fp32", "storybook-fp16", "storybook-tf32"]
    assert opened.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"


def test_a_scenario_opens_and_closes_by_keyboard(opened: Page) -> None:
    opener = opened.get_by_role("button", name="fp16")
    detail = opened.get_by_text("storybook-fp16 says why")
    assert not detail.is_visible()
    opener.focus()
    opened.keyboard.press("Enter")
    assert detail.is_visible()
    assert opener.get_attribute("aria-expanded") == "true"
    opened.keyboard.press("Enter")
    assert not detail.is_visible()


def test_the_slider_uncovers_the_reference(opened: Page) -> None:
    opened.get_by_role("button", name="fp16").click()
    slider = opened.get_by_role("slider", name="image 2")
    over = opened.get_by_role("img", name="fp16, image 2")
    widths = []
    for value in ("100", "0"):
        slider.fill(value)
        widths.append(over.evaluate("image => getComputedStyle(image).clipPath"))
    assert "100%" not in widths[0]
    assert "100%" in widths[1]


def test_the_theme_turns_and_turns_back(opened: Page) -> None:
    def back() -> str:
        return str(opened.evaluate("getComputedStyle(document.body).backgroundColor"))

    first = back()
    opened.get_by_role("button", name="Toggle theme").click()
    assert back() != first
    opened.get_by_role("button", name="Toggle theme").click()
    assert back() == first


@pytest.mark.parametrize("width", [360, 1280])
def test_a_screen_scrolls_the_table_and_not_the_page_and_each_scenario_shows_its_image(
    opened: Page, width: int
) -> None:
    opened.set_viewport_size({"width": width, "height": 800})
    opened.get_by_role("button", name="fp16").click()
    box = opened.locator(".inside:visible").bounding_box()
    assert box is not None
    assert box["width"] <= width
    small = opened.get_by_role("img", name="storybook-fp16 draws")
    assert small.is_visible()
    assert small.get_attribute("src") == opened.locator(
        "[data-name=storybook-fp16] .over"
    ).first.get_attribute("src")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.get_by_role("img", name="storybook-tf32 draws").count() == 0


def test_a_thousand_scenarios_open_filter_and_scroll(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(large_run(), strict=False), encoding="utf-8")
    with visited(browser, file) as tab:
        assert tab.locator("#scenarios > tbody").count() == 1000
        tab.locator("#status").select_option("regression")
        assert tab.locator("#shown").inner_text() == "20 of 1000 scenarios"
        tab.locator("#status").select_option("")
        last = tab.get_by_role("button", name="technique99").last
        last.scroll_into_view_if_needed()
        assert tab.evaluate("scrollY") > 0
        assert last.is_visible()


def test_the_report_of_a_real_run(browser: Browser, tmp_path: Path) -> None:
    scenarios = "[storybook-fp32] or [storybook-channels_last]"
    # Nothing stored is needed: what a page shows is measured all the same.
    nothing = f"--perf-baselines={tmp_path / 'none'}"
    result = run_suite("-k", scenarios, "--perf-budget=0", f"--perf-report={tmp_path}", nothing)
    assert result.returncode == 0, result.stdout
    with visited(browser, tmp_path / "report.html") as tab:
        assert shown(tab) == ["storybook-fp32", "storybook-channels_last"]
        tab.get_by_label("Find").fill("channels")
        assert shown(tab) == ["storybook-channels_last"]
        tab.get_by_role("button", name="channels_last", exact=True).click()
        assert tab.get_by_role("img", name="Every round of channels_last").is_visible()
        slider = tab.get_by_role("slider", name="image 1")
        slider.fill("80")
        over = tab.get_by_role("img", name="channels_last, image 1")
        assert "20%" in over.evaluate("image => image.style.clipPath")
        assert tab.get_by_role("img", name="storybook, black").is_visible()
        sizes = tab.locator("img:visible").evaluate_all("all => all.map(one => one.naturalWidth)")
        assert all(size > 0 for size in sizes)
        tab.get_by_role("button", name="Toggle theme").click()
