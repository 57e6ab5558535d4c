#!/usr/bin/env python3
"""Holds the source tree against rooms.toml: who includes or imports whom, sees libtorch or names operators; CMake."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import check_python_rooms

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CMAKE_ROOM = re.compile(r"^\s*modelport_room\(\s*(?P<name>\S+)(?P<rest>[^)]*)\)", re.MULTILINE)
SOURCES = {".h", ".cc", ".inc"}
# An operator by name, in a string. "aten." alone asks for the library that it is from.
OPERATOR = re.compile(r'"(aten\.\w[\w.]*)')
COMMENT = re.compile(r"(^|\s)//.*")


@dataclass(frozen=True)
class Rooms:
    """rooms.toml, read."""

    includes: dict[str, list[str]]
    elsewhere: dict[str, str]
    torch_headers: tuple[str, ...]
    torch_rooms: set[str]

    @classmethod
    def read(cls, root: Path) -> Rooms:
        data = tomllib.loads((root / "rooms.toml").read_text())
        return cls(
            data["includes"],
            data.get("elsewhere", {}),
            tuple(data["libtorch"]["headers"]),
            set(data["libtorch"]["rooms"]),
        )

    def folder(self, room: str) -> str:
        return self.elsewhere.get(room, f"src/{room}")

    def owner(self, path: str) -> str | None:
        """The room a path like backends/pt2/writer.h belongs to."""
        found = [room for room in self.includes if path.startswith(room + "/")]
        return max(found, key=len, default=None)


def check_table(rooms: Rooms) -> list[str]:
    """rooms.toml itself: only known rooms, everything spelled out, no cycle."""
    problems = []
    for room, allowed in rooms.includes.items():
        for other in allowed:
            if other not in rooms.includes:
                problems.append(f"rooms.toml: {room} names {other}, which is not a room")
                continue
            if room in rooms.includes[other] or room == other:
                problems.append(f"rooms.toml: {room} and {other} include each other")
            for beyond in rooms.includes[other]:
                if beyond not in allowed:
                    problems.append(f"rooms.toml: {room} includes {other} but not {beyond}, which {other} includes")
    for room in rooms.torch_rooms | set(rooms.elsewhere):
        if room not in rooms.includes:
            problems.append(f"rooms.toml: {room} is not a room")
    return problems


def check_include(rooms: Rooms, room: str, path: str, quoted: bool) -> str | None:
    """What is wrong with one #include of a file in `room`, or None."""
    if path.startswith(rooms.torch_headers):
        if room in rooms.torch_rooms:
            return None
        return f"{room} includes {path}; only {' and '.join(sorted(rooms.torch_rooms))} may see libtorch or Python"
    owner = rooms.owner(path)
    if owner is None:
        return f'"{path}" names no room; write includes from src/: "base/error.h"' if quoted else None
    if owner != room and owner not in rooms.includes[room]:
        allowed = ", ".join(rooms.includes[room]) or "no other room"
        return f"{room} includes {path}; rooms.toml allows it {allowed}"
    return None


def check_sources(root: Path, rooms: Rooms) -> list[str]:
    problems = []
    for room in rooms.includes:
        for file in sorted((root / rooms.folder(room)).rglob("*")):
            if file.suffix not in SOURCES:
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if match := INCLUDE.match(line):
                    problem = check_include(rooms, room, match[2], quoted=match[1] == '"')
                    if problem:
                        problems.append(f"{file.relative_to(root)}:{number}: {problem}")
    for file in sorted((root / "src").rglob("*")):
        path = file.relative_to(root / "src").as_posix()
        if file.suffix in SOURCES and rooms.owner(path) is None:
            problems.append(f"src/{path}: is in no room of rooms.toml")
    return problems


def check_operators(root: Path, rooms: Rooms) -> list[str]:
    """What is true of an operator stands in its row, so nobody but the table and tests names one."""
    problems = []
    for room in rooms.includes:
        if room == "ops":
            continue
        for file in sorted((root / rooms.folder(room)).rglob("*")):
            if file.suffix not in SOURCES or file.stem.endswith("_test"):
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                for match in OPERATOR.finditer(COMMENT.sub("", line)):
                    place = f"{file.relative_to(root)}:{number}"
                    problems.append(f"{place}: names {match[1]}; say it in the operator's row (src/ops/table/traits.h)")
    return problems


def check_cmake(root: Path, rooms: Rooms) -> list[str]:
    """The DEPS in src/CMakeLists.txt are the rows of rooms.toml."""
    problems = []
    linked = {}
    for match in CMAKE_ROOM.finditer((root / "src/CMakeLists.txt").read_text()):
        words = match["rest"].split()
        start = words.index("DEPS") + 1 if "DEPS" in words else len(words)
        stop = words.index("SYSTEM") if "SYSTEM" in words else len(words)
        linked[match["name"]] = set(words[start:stop])
    expected = {room: set(deps) for room, deps in rooms.includes.items() if room not in rooms.elsewhere}
    for room in sorted(linked.keys() | expected.keys()):
        if room not in linked:
            problems.append(f"src/CMakeLists.txt: room {room} of rooms.toml is missing")
        elif room not in expected:
            problems.append(f"src/CMakeLists.txt: room {room} is not in rooms.toml")
        elif linked[room] != expected[room]:
            want = " ".join(rooms.includes[room])
            problems.append(f"src/CMakeLists.txt: DEPS of {room} should be: {want}")
    return problems


def check(root: Path) -> list[str]:
    rooms = Rooms.read(root)
    problems = check_table(rooms)
    if problems:  # the rest would only repeat them
        return problems
    problems = check_sources(root, rooms) + check_operators(root, rooms) + check_cmake(root, rooms)
    return problems + check_python_rooms.check(root)


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    problems = check(root)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
