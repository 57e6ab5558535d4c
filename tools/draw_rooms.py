#!/usr/bin/env python3
"""Draws the rooms of rooms.toml into docs/ARCHITECTURE.md: an arrow goes from a room to each that it includes directly.

usage: tools/draw_rooms.py [--check]"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/ARCHITECTURE.md"
Rooms = dict[str, list[str]]


def without_detours(rooms: Rooms) -> Rooms:
    """Only the arrows that no path over other rooms stands for: rooms.toml also names the rooms behind a room."""
    return {
        room: [other for other in below if not any(other in rooms[between] for between in below)]
        for room, below in rooms.items()
    }


def picture(rooms: Rooms, marked: set[str]) -> str:
    """A mermaid flowchart, highest room first; the rooms that are marked have a thick border."""
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'  {_id(room)}["{room}"]' for room in reversed(rooms)]
    for room, below in reversed(without_detours(rooms).items()):
        lines += [f"  {_id(room)} --> {_id(other)}" for other in below]
    lines += [f"  style {_id(room)} stroke-width:3px" for room in rooms if room in marked]
    return "\n".join([*lines, "```"]) + "\n"


def _id(room: str) -> str:
    # "end" and words with a slash mean something else to mermaid.
    return "room_" + room.replace("/", "_")


def drawn(page: str, toml: str) -> str:
    """The page with its pictures as they have to be."""
    data = tomllib.loads(toml)
    pictures = {
        "rooms": picture(data["includes"], set(data["libtorch"]["rooms"])),
        "python rooms": picture(data["python"], set()),
    }
    for name, text in pictures.items():
        start, end = f"<!-- {name} -->\n", "<!-- end -->"
        if start not in page:
            raise SystemExit(f"{PAGE.name} has no place for the picture of the {name}")
        head, _, rest = page.partition(start)
        page = head + start + text + rest[rest.index(end) :]
    return page


def main(arguments: list[str]) -> int:
    before = PAGE.read_text()
    after = drawn(before, (ROOT / "rooms.toml").read_text())
    if "--check" in arguments:
        if before != after:
            print("docs/ARCHITECTURE.md shows other rooms than rooms.toml has: tools/draw_rooms.py")
        return int(before != after)
    PAGE.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
