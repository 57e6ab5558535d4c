"""What a capture found out about a model, for people."""

from __future__ import annotations

from typing import Any


def text_of(captured: Any) -> str:
    program = captured.program
    lines = [f"{program.node_count()} nodes"]
    lines += [f"  input {name}: {dtype}[{', '.join(sizes)}]" for name, dtype, sizes in program.inputs()]
    for dim in program.dims():
        high = "" if dim["hi"] is None else dim["hi"]
        origin = ", from data" if dim["from_data"] else ""
        lines.append(f"  {dim['name']} in {dim['lo']}..{high} (example {dim['hint']}{origin})")
    lines += [f"  {symbol} is {value}" for symbol, value in program.replacements().items()]
    if captured.guards:
        lines.append("the model asked")
        lines += [f"  {g['condition']} ({g['effect']}){_at(g)}" for g in captured.guards]
    if captured.assumptions:
        lines.append("the model branched on its data; the graph holds where these are as they were")
        lines += [f"  expected {a['expected']}{_at(a)}" for a in captured.assumptions]
    if captured.attempts:
        lines.append("captures that were tried")
        lines += [f"  {one.name}, because {one.reason}: {one.outcome}" for one in captured.attempts]
    return "\n".join(lines)


def _at(row: dict[str, Any]) -> str:
    return f"  at {row['file']}:{row['line']} in {row['function']}" if row["line"] else ""
