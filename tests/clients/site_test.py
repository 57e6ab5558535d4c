"""The site that `make site` builds: it needs no other host, fits phones and desktops, and finds architectures."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import build_site
import pytest
from chromium import Page, chromium_page

WIDTHS = {390: 844, 1440: 900}
PICTURES = os.environ.get("MODELPORT_PICTURES")  # a folder, to look at what is tested here
LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=\"([^\"]+)\"")


class Links(HTMLParser):
    """What a page points to, and the places in it that others may point to."""

    def __init__(self, page: Path):
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.targets += [value for name in ("href", "src") if (value := found.get(name))]
        self.places |= {value for name in ("id", "name") if (value := found.get(name))}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    build_site.build(folder)
    return folder


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium_page(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def shown(page: Page, file: Path, width: int) -> None:
    page.size(width, WIDTHS[width])
    page.call("Page.navigate", url=file.as_uri())
    page.wait(f"location.href === {file.as_uri()!r} && document.readyState === 'complete'")


def test_every_link_and_every_place_in_a_page_is_there(site: Path) -> None:
    pages = {file.resolve(): Links(file) for file in site.rglob("*.html")}
    assert len(pages) > 25
    broken = []
    for file, links in pages.items():
        for target in links.targets:
            if re.match(r"[a-z]+:", target):
                continue
            path, _, place = target.partition("#")
            other = (file.parent / path.partition("?")[0]).resolve() if path else file
            if not other.exists() or (place and other in pages and place not in pages[other].places):
                broken.append(f"{file.name} -> {target}")
    assert broken == []


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loaded = {target for file in site.rglob("*.html") for target in LOADED.findall(file.read_text())}
    assert len(loaded) > 5
    assert sorted(target for target in loaded if "//" in target) == []
    styles = [file.read_text() for file in site.rglob("*.css")]
    assert styles and not any(re.search(r"url\(\s*[\"']?(https?:)?//|@import", style) for style in styles)


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_the_screen_and_complain_of_nothing(width: int, page: Page, site: Path) -> None:
    page.logged.clear()
    for name in ("index", "tour", "how-to/executorch", "cli", "SUPPORT", "ARCHITECTURE", "api", "errors"):
        shown(page, site / f"{name}.html", width)
        assert page.run("document.documentElement.scrollWidth") <= width, name
        if PICTURES:
            page.picture(Path(PICTURES) / f"site-{width}-{name.replace('/', '-')}.png")
    assert page.logged == []


def test_the_table_of_architectures_is_searched_by_words(page: Page, site: Path) -> None:
    shown(page, site / "SUPPORT.html", 390)
    rows = "[...document.querySelectorAll('tbody tr')].filter(row => row.offsetParent)"
    everything = page.run(f"{rows}.length")
    page.run("document.querySelector('.table-search input').focus()")
    page.type("qwen3 runs")
    found = page.run(f"{rows}.map(row => row.cells[1].textContent)")
    assert "Qwen3ForCausalLM" in found and len(found) < 20
    assert all("qwen3" in name.lower() for name in found)
    assert page.run("document.querySelector('.table-search [role=status]').textContent").startswith(f"{len(found)} of ")
    assert everything > 200


def test_the_search_of_the_site_finds_a_page_from_a_disk(page: Page, site: Path) -> None:
    shown(page, site / "index.html", 1440)
    page.call("Page.navigate", url=(site / "search.html").as_uri() + "?q=perplexity")
    page.wait("document.querySelector('.search li a[href^=\"onnx.html\"]') !== null")  # results come one by one
