"""What differs between two artifacts, captures or checkpoints: their records side by side."""

from __future__ import annotations

import dataclasses
import filecmp
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .contents import difference
from .reading import read_report
from .record import Axis, ModuleTree, Node, Part, Report, Value, Weight

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
_SMALL = 64  # bytes of a constant that is shown by its contents
_VALUE = re.compile(r"%[\w.]+")  # numbered anew when a node comes or goes


@dataclasses.dataclass(frozen=True)
class Change:
    kind: str  # ADDED, REMOVED or CHANGED
    name: str
    words: str = ""  # what it is, or what it was and what it became
    part: str = ""


@dataclasses.dataclass
class Section:
    name: str
    same: int = 0
    changes: list[Change] = dataclasses.field(default_factory=list)

    def counts(self) -> str:
        found = Counter(change.kind for change in self.changes)
        return ", ".join(f"{found[kind]} {kind}" for kind in (CHANGED, ADDED, REMOVED) if found[kind])


@dataclasses.dataclass
class Difference:
    """`same` says whether there is none; `print(difference)` shows counts, then details."""

    before: Report
    after: Report
    sections: list[Section]
    notes: list[str] = dataclasses.field(default_factory=list)

    @property
    def same(self) -> bool:
        return not any(section.changes for section in self.sections)

    def to_dict(self) -> dict[str, Any]:
        sections = {
            section.name: {"same": section.same, "changes": [dataclasses.asdict(change) for change in section.changes]}
            for section in self.sections
        }
        return {
            "same": self.same,
            "before": self.before.path or self.before.title,
            "after": self.after.path or self.after.title,
            "sections": sections,
            "notes": self.notes,
        }

    def __str__(self) -> str:
        return self.text()

    def text(self, most: int = 20) -> str:
        """Of each section at most so many changes."""
        if self.same:
            return "\n".join(["no difference", *self.notes])
        changed = [section for section in self.sections if section.changes]
        same = [f"{section.name} ({section.same})" for section in self.sections if not section.changes and section.same]
        wide = max(len(section.name) for section in changed)
        lines = [f"{section.name:{wide}}  {section.counts()}, {section.same} the same" for section in changed]
        lines += [f"the same: {', '.join(same)}"] if same else []
        for section in changed:
            lines += ["", section.name, *map(_line, section.changes[:most])]
            if len(section.changes) > most:
                lines.append(f"  and {len(section.changes) - most} more: --all")
        return "\n".join([*lines, *self.notes])


def _line(change: Change) -> str:
    sign = {ADDED: "+", REMOVED: "-", CHANGED: "~"}[change.kind]
    part = f"{change.part}: " if change.part else ""
    return f"  {sign} {part}{change.name}{': ' if change.words else ''}{change.words}"


def diff(before: Any, after: Any) -> Difference:
    """Compares two of: an artifact by its path, a checkpoint folder, a capture."""
    return compare_reports(_report(before), _report(after))


def _report(given: Any) -> Report:
    if isinstance(given, str | os.PathLike):
        return read_report(given)
    from .of_graph import captured_report

    return captured_report(given)


def compare_reports(before: Report, after: Report) -> Difference:
    sections = [
        _of_mapping("about", before.facts, after.facts),
        _of_mapping("metadata", before.metadata, after.metadata),
    ]
    pairs = _pairs(before, after)
    if len(before.parts) != 1 or len(after.parts) != 1:
        names, others = ({part.name: "" for part in report.parts} for report in (before, after))
        sections.append(_of_mapping("parts", names, others))
    several = len(pairs) > 1
    parts = [_of_part(one, other) for one, other in pairs]
    for together in zip(*parts, strict=True):
        joined = Section(together[0].name)
        for section, (one, _) in zip(together, pairs, strict=True):
            joined.same += section.same
            part = one.name if several else ""
            joined.changes += [dataclasses.replace(change, part=part) for change in section.changes]
        sections.append(joined)
    found = Difference(before, after, sections)
    uncompared = sum(_uncompared(*pair) for pair in pairs)
    if found.same:
        sections.append(_of_bytes(before, after))
    elif uncompared:
        found.notes.append(f"the contents of {uncompared} weights are not known, and were not compared")
    return found


def _pairs(before: Report, after: Report) -> list[tuple[Part, Part]]:
    """Parts by name; of two that have one each, these, whatever they are called."""
    if len(before.parts) == len(after.parts) == 1:
        return [(before.parts[0], after.parts[0])]
    known = {part.name: part for part in after.parts}
    return [(part, known[part.name]) for part in before.parts if part.name in known]


def _of_part(before: Part, after: Part) -> list[Section]:
    return [
        _of_mapping("settings", before.facts, after.facts),
        _of_mapping("inputs", _values(before.inputs), _values(after.inputs)),
        _of_mapping("outputs", _values(before.outputs), _values(after.outputs)),
        _of_mapping("axes", _axes(before.axes), _axes(after.axes)),
        _of_mapping("limits", dict.fromkeys(before.limits, ""), dict.fromkeys(after.limits, "")),
        _of_mapping("operators", _counts(before.operators), _counts(after.operators)),
        _of_modules(before, after),
        _of_mapping("delegates", _delegates(before), _delegates(after)),
        _of_weights(before, after),
        _of_mapping("constants", _constants(before), _constants(after)),
    ]


def _of_mapping(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> Section:
    section = Section(name)
    for key in dict.fromkeys([*before, *after]):
        if key not in after:
            section.changes.append(Change(REMOVED, key, before[key]))
        elif key not in before:
            section.changes.append(Change(ADDED, key, after[key]))
        elif before[key] != after[key]:
            section.changes.append(Change(CHANGED, key, f"{before[key]} -> {after[key]}"))
        else:
            section.same += 1
    return section


def _values(values: Iterable[Value]) -> dict[str, str]:
    return {one.name: one.dtype + ("" if one.shape is None else f"[{', '.join(one.shape)}]") for one in values}


def _axes(axes: Iterable[Axis]) -> dict[str, str]:
    return {axis.name: axis.sizes for axis in axes}


def _counts(operators: Mapping[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in operators.items()}


def _delegates(part: Part) -> dict[str, str]:
    return {
        f"{row['backend']} {i}": f"{row['nodes']} nodes, {row['bytes']} bytes" for i, row in enumerate(part.delegates)
    }


# --- modules ----------------------------------------------------------------------------------------------------------


def _of_modules(before: Part, after: Part) -> Section:
    """Modules by the nodes of their own, in their order, whatever their values are called."""
    one, other = _own_nodes(before), _own_nodes(after)
    section = Section("modules")
    for path in dict.fromkeys([*one, *other]):
        name = path or "the model itself"
        if path not in other:
            section.changes.append(Change(REMOVED, name, f"{len(one[path])} nodes"))
        elif path not in one:
            section.changes.append(Change(ADDED, name, f"{len(other[path])} nodes"))
        elif (words := _apart(one[path], other[path])) is not None:
            section.changes.append(Change(CHANGED, name, words))
        else:
            section.same += 1
    if not section.changes and _wiring(before) != _wiring(after):
        section.changes.append(Change(CHANGED, "the graph", "the same nodes take other values"))
    return section


def _own_nodes(part: Part) -> dict[str, list[Node]]:
    tree = ModuleTree(part)
    nodes: dict[str, list[Node]] = {module.path: [] for module in tree.modules if module.nodes}
    for node, home in zip(part.nodes, tree.node_homes, strict=True):
        nodes[tree.modules[home].path].append(node)
    return nodes


def _apart(before: list[Node], after: list[Node]) -> str | None:
    if [_form(node) for node in before] == [_form(node) for node in after]:
        return None
    ops, others = Counter(node.op for node in before), Counter(node.op for node in after)
    gone = [f"-{count} {op}" for op, count in (ops - others).items()]
    new = [f"+{count} {op}" for op, count in (others - ops).items()]
    if gone or new:
        return ", ".join(new + gone)
    forms, other_forms = Counter(map(_form, before)), Counter(map(_form, after))
    if forms == other_forms:
        return "the same nodes in another order"
    (op, was), (_, became) = next(iter(forms - other_forms)), next(iter(other_forms - forms))
    rest = (forms - other_forms).total() - 1
    return f"{op}: {was} -> {became}" + (f", and {rest} more" if rest else "")


def _form(node: Node) -> tuple[str, str]:
    return node.op, _VALUE.sub("%", node.text)


def _wiring(part: Part) -> list[list[int | str]]:
    """What each node takes, by number of the value: names may be others."""
    numbers: dict[str, int] = {}
    rows: list[list[int | str]] = []
    weights = {weight.name for weight in part.weights if not _is_constant(weight)}
    weights |= {value.name for value in part.inputs}
    for node in part.nodes:
        rows.append([name if name in weights else numbers.setdefault(name, len(numbers)) for name in node.inputs])
        for name in node.outputs:
            numbers.setdefault(name, len(numbers))
    return rows


# --- weights ----------------------------------------------------------------------------------------------------------


def _of_weights(before: Part, after: Part) -> Section:
    one, other = ({w.name: w for w in part.weights if not _is_constant(w)} for part in (before, after))
    section = Section("weights")
    for name in dict.fromkeys([*one, *other]):
        if name not in other:
            section.changes.append(Change(REMOVED, name, _kind(one[name])))
        elif name not in one:
            section.changes.append(Change(ADDED, name, _kind(other[name])))
        elif (words := _weight(one[name], other[name])) is not None:
            section.changes.append(Change(CHANGED, name, words))
        else:
            section.same += 1
    return section


def _is_constant(weight: Weight) -> bool:
    """Whether the exporter made it: its name is a number, and another one where a node more comes before it."""
    return re.fullmatch(r"v\d+", weight.name) is not None and weight.bytes <= _SMALL


def _constants(part: Part) -> dict[str, str]:
    """How often each is there, by type and contents."""
    found = Counter(f"{_kind(one)} {_hex(one)}".strip() for one in part.weights if _is_constant(one))
    return _counts(found)


def _hex(weight: Weight) -> str:
    return b"".join(weight.contents()).hex() if weight.contents is not None else ""


def _kind(weight: Weight) -> str:
    return f"{weight.dtype}[{', '.join(map(str, weight.shape))}]"


def _weight(before: Weight, after: Weight) -> str | None:
    if _kind(before) != _kind(after):
        return f"{_kind(before)} -> {_kind(after)}"
    if before.contents is None or after.contents is None:
        return None
    return difference(before.contents, after.contents, before.dtype)


def _uncompared(before: Part, after: Part) -> int:
    known = {weight.name: weight for weight in after.weights}
    shared = [(weight, known[weight.name]) for weight in before.weights if weight.name in known]
    return sum(one.bytes > 0 and (one.contents is None or other.contents is None) for one, other in shared)


def _of_bytes(before: Report, after: Report) -> Section:
    """Where nothing above differs, files may still: in what no record has."""
    section = Section("bytes")
    for one, other in zip(before.whole, after.whole, strict=False):
        if filecmp.cmp(one, other, shallow=False):
            section.same += 1
        else:
            section.changes.append(Change(CHANGED, Path(one).name, "other bytes, in what is not compared above"))
    return section
