"""Holds the imports of python/modelport against the table [python] of rooms.toml."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = "python/modelport"
BORDER = {"__init__.py", "__main__.py"}  # files outside the rooms: they may import any


class Import(NamedTuple):
    """One import statement: the file of ours that it leads to, or the package of others."""

    line: int
    file: Path | None
    package: str


def imports_of(file: Path, root: Path) -> Iterator[Import]:
    """Every import of a file, those inside functions too."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, None, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield Import(node.lineno, None, str(node.module).partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            home = file.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for alias in node.names:
                found = _file_of(home / alias.name) or _file_of(home)
                if found is not None and found != root / PACKAGE / "__init__.py":  # the extensions lie beside it
                    yield Import(node.lineno, found, "")


def _file_of(path: Path) -> Path | None:
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def check(root: Path) -> list[str]:
    table = tomllib.loads((root / "rooms.toml").read_text())
    rooms: dict[str, list[str]] = table.get("python", {})
    if not rooms:
        return []
    problems = _check_table(rooms)
    if problems:
        return problems
    rooms = reached(rooms)
    package = root / PACKAGE
    edges: dict[Path, list[Path]] = {}
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package)
        room = path.parts[0]
        if room not in rooms and path.as_posix() not in BORDER:
            problems.append(f"{PACKAGE}/{path}: is in no room of rooms.toml")
            continue
        found = list(imports_of(file, root))
        edges[file] = [one.file for one in found if one.file is not None and one.file != file]
        for one in found if room in rooms else ():
            problem = _check_import(room, one, package, rooms, table.get("python_packages", {}))
            if problem is not None:
                problems.append(f"{PACKAGE}/{path}:{one.line}: {problem}")
    if problems:  # an import that goes upward makes circles, which would only repeat it
        return problems
    return [f"{PACKAGE}: these files import each other: {circle}" for circle in _circles(edges, package)]


def reached(rooms: dict[str, list[str]]) -> dict[str, list[str]]:
    """For each room all that lie below it, those that it names first."""
    below: dict[str, list[str]] = {}
    for room, named in rooms.items():
        further = [name for other in named for name in below[other]]
        below[room] = list(dict.fromkeys([*named, *further]))
    return below


def _check_table(rooms: dict[str, list[str]]) -> list[str]:
    """Every room names rooms above it in the list, and none that another of them reaches."""
    problems: list[str] = []
    known: set[str] = set()
    for room, named in rooms.items():
        where = f"rooms.toml: python room {room}"
        problems += [f"{where} names {other}, which is not listed above it" for other in named if other not in known]
        known.add(room)
    if problems:
        return problems
    below = reached(rooms)
    return [
        f"rooms.toml: python room {room} names {other}, which {through} reaches already"
        for room, named in rooms.items()
        for other in named
        for through in named
        if other in below[through]
    ]


def _check_import(
    room: str, one: Import, package: Path, rooms: dict[str, list[str]], packages: dict[str, list[str]]
) -> str | None:
    if one.file is None:
        owners = packages.get(one.package)
        if owners is None or room in owners:
            return None
        return f"{room} imports {one.package}; only {' and '.join(owners)} may"
    target = one.file.relative_to(package).parts[0]
    if target == room or target in rooms[room]:
        return None
    allowed = ", ".join(rooms[room]) or "no other room"
    return f"{room} imports {target}; rooms.toml allows it {allowed}"


def _circles(edges: dict[Path, list[Path]], package: Path) -> Iterator[str]:
    """Files that lead back to themselves, each circle once."""
    done: set[Path] = set()

    def walk(file: Path, trail: list[Path]) -> Iterator[str]:
        if file in trail:
            circle = [*trail[trail.index(file) :], file]
            yield " -> ".join(one.relative_to(package).as_posix() for one in circle)
            return
        if file in done:
            return
        for other in edges.get(file, ()):
            yield from walk(other, [*trail, file])
        done.add(file)

    for file in edges:
        yield from walk(file, [])
