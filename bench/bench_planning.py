#!/usr/bin/env python3
"""The arena of our programs next to what ExecuTorch's own greedy planner makes of the same tensors and lifetimes.

Tensors and the instructions that use them are read from our files by ExecuTorch's reader; a view shares the memory of
what it views in both plans. Beside them stands the least that any plan needs: the bytes that live at one time. Exits
with 1 where ours is larger than the planner's."""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from requirements import Requirements

ROOT = Path(__file__).resolve().parent.parent
ROWS = ("bert", "vit", "resnet", "swin", "t5", "whisper", "detr", "llama", "qwen3", "mamba")
ALIGNMENT = 16
ARENA = 1  # of what a run computes; state has another


@dataclass
class Memory:
    """Bytes that a tensor and its views share, and the instructions between which they are used."""

    size: int
    first: int
    last: int


def memories(plan: Any) -> list[Memory]:
    instructions = plan.chains[0].instructions
    used: dict[int, list[int]] = defaultdict(list)
    base: dict[int, int] = {}  # of a view: what it views
    for at, instruction in enumerate(instructions):
        call = instruction.instr_args
        for value in arguments_of(plan, call):
            used[value].append(at)
        name = plan.operators[call.op_index].name if hasattr(call, "op_index") else ""
        if name == "executorch_prim::et_view":
            base[call.args[-1]] = base.get(call.args[0], call.args[0])
    for value in plan.inputs:
        used[value].append(0)
    for value in plan.outputs:
        used[value].append(len(instructions) - 1)
    shared: dict[int, list[int]] = defaultdict(list)
    for value in used:
        shared[base.get(value, value)].append(value)
    found = []
    for values in shared.values():
        sizes = [size for value in values if (size := planned_size(plan.values[value].val))]
        times = [at for value in values for at in used[value]]
        if sizes:
            found.append(Memory(max(sizes), min(times), max(times)))
    return found


def arguments_of(plan: Any, call: Any) -> Iterator[int]:
    """Values of a call, those in lists too."""
    given = call.args if hasattr(call, "args") else [call.move_from, call.move_to] if hasattr(call, "move_to") else []
    for value in given:
        yield value
        yield from getattr(plan.values[value].val, "items", None) or []


def planned_size(value: Any) -> int:
    """Bytes of a tensor in the arena; 0 for what lies elsewhere."""
    from executorch.exir.tensor import get_scalar_type, num_bytes_from_shape_and_dtype

    info = getattr(value, "allocation_info", None)
    if info is None or info.memory_id != ARENA:
        return 0
    return num_bytes_from_shape_and_dtype(value.sizes, get_scalar_type(value.scalar_type))


def planned_by_executorch(tensors: list[Memory]) -> int:
    import torch
    from executorch.exir.memory_planning import greedy
    from executorch.exir.tensor import TensorSpec

    specs = set()
    for memory in tensors:
        spec = TensorSpec(torch.uint8, torch.Size([memory.size]))
        spec.lifetime = [memory.first, memory.last]
        specs.add(spec)
    nothing = torch.fx.GraphModule({}, torch.fx.Graph())
    return sum(greedy(ALIGNMENT, specs, nothing, None).bufsizes)


def least(tensors: list[Memory]) -> int:
    """Bytes that live at one time, at the most."""
    changes: dict[int, int] = defaultdict(int)
    for memory in tensors:
        changes[memory.first] += memory.size
        changes[memory.last + 1] -= memory.size
    alive = peak = 0
    for at in sorted(changes):
        alive += changes[at]
        peak = max(peak, alive)
    return peak


def main() -> int:
    from executorch.exir._serialize._program import deserialize_pte_binary

    import modelport

    sys.path.insert(0, str(ROOT / "tests"))
    from zoo import ROWS as ZOO

    rows = {row.name: row for row in ZOO}
    requirements = Requirements()
    print(f"  {'':<12}{'ours':>12}{'greedy':>12}{'alive':>12}  bytes")
    with tempfile.TemporaryDirectory() as folder:
        for name in ROWS:
            model, inputs = rows[name].build()
            config = modelport.ExecutorchConfig(recipe="portable")
            file = modelport.ExecutorchExporter().export(model, inputs, config).save(Path(folder) / f"{name}.pte")
            plan = deserialize_pte_binary(Path(file).read_bytes()).program.execution_plan[0]
            ours, tensors = plan.non_const_buffer_sizes[ARENA], memories(plan)
            theirs = planned_by_executorch(tensors)
            print(f"  {name:<12}{ours:>12,}{theirs:>12,}{least(tensors):>12,}")
            requirements.check(f"{name}: no larger than its plan", ours <= theirs, f"{ours / max(theirs, 1):.2f} of it")
    return requirements.verdict()


if __name__ == "__main__":
    sys.exit(main())
