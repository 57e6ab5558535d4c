"""Draws a mermaid flowchart of ours as SVG: boxes in layers, an arrow from a box to each below it.

A box stands one layer above the highest that it points to. Arrows that pass layers get a place of their own in each of
them, so that they pass between boxes; boxes and places are ordered by those that they are joined with."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

_BOX = re.compile(r'^  (\w+)\["(.+)"\]$', re.MULTILINE)
_ARROW = re.compile(r"^  (\w+) --> (\w+)$", re.MULTILINE)
_THICK = re.compile(r"^  style (\w+) stroke-width", re.MULTILINE)
_HEIGHT, _GAP, _LAYER, _SWEEPS = 30, 16, 74, 24  # pixels, and passes over the layers


@dataclass
class Flowchart:
    labels: dict[str, str]
    arrows: list[tuple[str, str]]
    thick: set[str] = field(default_factory=set)


def read(text: str) -> Flowchart:
    return Flowchart(dict(_BOX.findall(text)), _ARROW.findall(text), set(_THICK.findall(text)))


def layers(chart: Flowchart) -> dict[str, int]:
    """Boxes that point to nothing are in layer 0."""
    below: dict[str, list[str]] = {box: [] for box in chart.labels}
    for above, under in chart.arrows:
        below[above].append(under)
    found: dict[str, int] = {}

    def layer(box: str) -> int:
        if box not in found:
            found[box] = 1 + max(map(layer, below[box]), default=-1)
        return found[box]

    for box in chart.labels:
        layer(box)
    return found


def _paths(chart: Flowchart, layer: dict[str, int]) -> list[list[str]]:
    """Each arrow as the boxes and places that it goes through."""
    return [
        [above, *(f"{above}>{under}@{i}" for i in range(layer[above] - 1, layer[under], -1)), under]
        for above, under in chart.arrows
    ]


def _ordered(chart: Flowchart, layer: dict[str, int], paths: list[list[str]]) -> list[list[str]]:
    rows: list[list[str]] = [[] for _ in range(max(layer.values()) + 1)]
    for box, at in layer.items():
        rows[at].append(box)
    near: dict[str, list[str]] = {box: [] for box in chart.labels}
    for path in paths:
        for i, place in enumerate(path[1:-1], 1):
            rows[layer[path[0]] - i].append(place)
            near[place] = []
        for above, under in itertools.pairwise(path):
            near[above].append(under)
            near[under].append(above)
    for sweep in range(_SWEEPS):
        place = {item: i / max(len(row) - 1, 1) for row in rows for i, item in enumerate(row)}
        for row in rows[:: 1 if sweep % 2 else -1]:
            row.sort(key=lambda item: sum(place[other] for other in near[item]) / max(len(near[item]), 1))
            place |= {item: i / max(len(row) - 1, 1) for i, item in enumerate(row)}
    return rows


def svg(chart: Flowchart) -> str:
    layer = layers(chart)
    paths = _paths(chart, layer)
    rows = _ordered(chart, layer, paths)
    widths = {item: 8 * len(chart.labels[item]) + 20 if item in chart.labels else 12 for row in rows for item in row}
    whole = max(sum(widths[item] + _GAP for item in row) for row in rows)
    place: dict[str, tuple[float, float]] = {}
    for at, row in enumerate(rows):
        gap = (whole - sum(widths[item] for item in row)) / len(row)
        x = gap / 2
        for item in row:
            place[item] = (x + widths[item] / 2, 4 + _LAYER * (len(rows) - 1 - at))
            x += widths[item] + gap
    drawn = [_arrow([place[item] for item in path]) for path in paths]
    for box, label in chart.labels.items():
        x, y = place[box]
        style = ' class="thick"' if box in chart.thick else ""
        size = f'x="{x - widths[box] / 2:.0f}" y="{y:.0f}" width="{widths[box]}" height="{_HEIGHT}" rx="4"'
        drawn.append(f'<rect{style} {size}/><text x="{x:.0f}" y="{y + 20:.0f}">{label}</text>')
    head = '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    view = f'viewBox="0 0 {whole:.0f} {_LAYER * (len(rows) - 1) + _HEIGHT + 8}"'
    described = ", ".join(f"{chart.labels[a]} to {chart.labels[b]}" for a, b in chart.arrows)
    begin = f'<svg class="rooms" role="img" aria-label="arrows: {described}" {view}>'
    return "\n".join([begin, f'<defs>{head}<path d="M0 0L8 4L0 8z"/></marker></defs>', *drawn, "</svg>"]) + "\n"


def _arrow(points: list[tuple[float, float]]) -> str:
    x, y = points[0]
    path = f"M{x:.0f} {y + _HEIGHT}"
    for i, (next_x, next_y) in enumerate(points[1:], 1):
        start, end = y + _HEIGHT, next_y
        bend = (start + end) / 2
        path += f"C{x:.0f} {bend:.0f} {next_x:.0f} {bend:.0f} {next_x:.0f} {end:.0f}"
        if i < len(points) - 1:
            path += f"V{end + _HEIGHT:.0f}"
        x, y = next_x, next_y
    return f'<path d="{path}" marker-end="url(#head)"/>'
