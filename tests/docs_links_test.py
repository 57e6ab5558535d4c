"""Links of the documents lead somewhere, to headings as well, both on GitHub and in the site."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    assert len(found) > 20
    return found


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """The names of headings as GitHub makes them."""
    found = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def is_broken(page: Path, target: str) -> bool:
    if "://" in target:
        return False
    path, _, heading = target.partition("#")
    file = page.parent / path if path else page
    return not file.exists() or (bool(heading) and heading not in anchors(file))


def test_every_link_leads_to_a_file_and_to_a_heading_that_are_there() -> None:
    links = [(page, target) for page in pages() for target in LINK.findall(prose(page))]
    assert len(links) > 60
    assert any("#" in target for _, target in links)
    broken = [f"{page.relative_to(ROOT)} -> {target}" for page, target in links if is_broken(page, target)]
    assert broken == []


def test_a_link_to_a_heading_that_is_not_there_is_broken() -> None:
    page = ROOT / "docs/tour.md"
    assert not is_broken(page, "onnx.md#weights-in-few-bits")
    assert is_broken(page, "onnx.md#weights-in-many-bits")
    assert is_broken(page, "nowhere.md")


def test_every_page_of_docs_is_reached_from_the_readme() -> None:
    reached, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop().resolve()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            left += [
                page.parent / target.partition("#")[0] for target in LINK.findall(prose(page)) if "://" not in target
            ]
    assert sorted(str(page) for page in ROOT.glob("docs/**/*.md") if page not in reached) == []


def test_the_readme_is_a_screen_long_and_shows_a_picture_that_is_small() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 75
    [picture] = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert 10_000 < (ROOT / picture).stat().st_size < 100_000


def test_the_api_page_is_what_the_command_writes() -> None:
    import api_page

    assert (ROOT / "docs/api.md").read_text() == api_page.page(), "make api"
