"""Documents that repeat facts of the code are held against it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from modelport.base.errors import CODES

ROOT = Path(__file__).resolve().parent.parent
CODE = re.compile(r"^\s*(\w+)\s*=\s*(\d+),", re.MULTILINE)
HEADING = re.compile(r"^## E(\d{4}) (\w+)$", re.MULTILINE)


def codes_of_the_sources() -> dict[int, str]:
    text = (ROOT / "src/base/error.h").read_text()
    body = text.split("enum class Code", 1)[1].split("};", 1)[0]
    of_the_header = {int(number): name for name, number in CODE.findall(body)}
    of_python = {int(code.removeprefix("E")): name for code, name in CODES.items()}
    assert not set(of_the_header) & set(of_python)
    return of_the_header | of_python


def sections_of_the_page() -> dict[int, str]:
    page = (ROOT / "docs/errors.md").read_text()
    return {int(number): name for number, name in HEADING.findall(page)}


def test_every_error_code_has_its_section_in_errors_md_and_no_section_is_stale() -> None:
    codes = codes_of_the_sources()
    assert len(codes) > 10, "the enum was not found"
    assert sections_of_the_page() == codes


def test_every_section_of_errors_md_offers_a_way_out() -> None:
    page = (ROOT / "docs/errors.md").read_text()
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        assert "**Way out.**" in section, section.splitlines()[0]


def test_the_architecture_page_names_every_room() -> None:
    rooms = re.findall(r'^"?([\w/]+)"? = \[', (ROOT / "rooms.toml").read_text().split("[elsewhere]")[0], re.MULTILINE)
    page = (ROOT / "docs/ARCHITECTURE.md").read_text()
    assert len(rooms) > 8
    assert [room for room in rooms if f"`{room}`" not in page] == []


def test_the_support_table_is_what_the_command_writes() -> None:
    import support_table

    assert (ROOT / "docs/SUPPORT.md").read_text() == support_table.page(), "make support"


def test_the_pictures_of_the_rooms_are_those_of_rooms_toml() -> None:
    import draw_rooms

    page, toml = (ROOT / "docs/ARCHITECTURE.md").read_text(), (ROOT / "rooms.toml").read_text()
    assert draw_rooms.drawn(page, toml) == page, "tools/draw_rooms.py"
    renamed = toml.replace("quick_imports", "slow_imports")
    assert draw_rooms.drawn(page, renamed) != page


def test_a_picture_has_an_arrow_only_where_no_path_leads() -> None:
    import draw_rooms

    assert draw_rooms.without_detours({"low": [], "middle": ["low"], "high": ["middle", "low"]}) == {
        "low": [],
        "middle": ["low"],
        "high": ["middle"],
    }


def test_the_site_draws_each_room_above_those_that_it_includes() -> None:
    import draw_graph
    import draw_rooms

    rooms = {"low": [], "middle": ["low"], "high": ["middle", "low"], "side": ["low"], "top": ["high", "side"]}
    chart = draw_graph.read(draw_rooms.picture(rooms, {"side"}))
    assert draw_graph.layers(chart) == {f"room_{name}": i for name, i in zip(rooms, (0, 1, 2, 1, 3), strict=True)}
    drawn = draw_graph.svg(chart)
    assert all(f">{room}</text>" in drawn for room in rooms)
    assert drawn.count("marker-end") == len(chart.arrows) == 5
    assert drawn.count('class="thick"') == 1


def functions_of_the_walk() -> list[tuple[str, str]]:
    page = (ROOT / "docs/ARCHITECTURE.md").read_text()
    walk = page.split("\n## A walk", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `([\w:]+)` \| `([\w/.]+)` \|", walk, re.MULTILINE)


def test_the_walk_leads_through_functions_that_exist_to_each_kind_of_file() -> None:
    steps = functions_of_the_walk()
    assert len(steps) > 20
    for function, path in steps:
        # At the start of a line a definition stands, and no call.
        definition = rf"^(?:def {function}|[\w:<>,&* \[\]]*\b{function})\("
        assert re.search(definition, (ROOT / path).read_text(), re.MULTILINE), f"{path} has no {function}"
    assert {"write_pt2", "write_onnx", "write_executorch"} <= {function for function, _ in steps}


def test_folders_of_tests_are_called_as_the_rooms_that_they_test() -> None:
    rooms = tomllib.loads((ROOT / "rooms.toml").read_text())
    known = {*rooms["python"], *(room.split("/")[0] for room in rooms["includes"]), "clients"}
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/*_test.py")}
    assert len(folders) > 10
    assert sorted(folders - known) == []
