"""Tables of verdicts, and each fault as a program that can be run by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .calls import Trial
from .program import FuzzProgram, make_program
from .trying import Finding
from .verdict import Verdict
from .ways import WAYS

SILENT = Verdict.DIFFERENT
SHOWN_SEEDS = 12


def table(found: Iterable[Finding]) -> str:
    """Verdicts by way; the seeds of those that are no good."""
    found = list(found)
    counts = Counter((one.verdict, one.way) for one in found)
    columns = ["capture", *WAYS]
    verdicts = sorted({verdict for verdict, _ in counts}, key=_rank)
    width = max((len(v) for v in verdicts), default=8) + 2
    lines = ["".ljust(width) + "".join(c.rjust(20) for c in columns)]
    lines += [v.ljust(width) + "".join(str(counts[v, c] or "").rjust(20) for c in columns) for v in verdicts]
    for verdict in verdicts:
        if verdict in (Verdict.SAME, Verdict.REFUSED, Verdict.BOTH_FAIL, Verdict.BY_DATA):
            continue
        seeds = sorted({one.seed for one in found if one.verdict == verdict})
        more = f" and {len(seeds) - SHOWN_SEEDS} more" if len(seeds) > SHOWN_SEEDS else ""
        lines.append(f"{verdict}: {len(seeds)} programs: {', '.join(map(str, seeds[:SHOWN_SEEDS]))}{more}")
    return "\n".join(lines)


def _rank(verdict: str) -> int:
    order = list(map(str, Verdict))
    return order.index(verdict) if verdict in order else len(order)


def alone(one: Finding, program: FuzzProgram | None = None) -> str:
    """The program of a finding, with the call that shows it."""
    program = make_program(one.seed) if program is None else program
    save = 'modelport.ExportedProgram(captured).save("model.pt2")'
    ways = {
        "captured.run": "got = captured.run(**inputs)",
        "load_pt2": f'{save}\ngot = modelport.load_pt2("model.pt2").run(**inputs)',
        "torch.export.load": f'{save}\ngot = torch.export.load("model.pt2").module()(**inputs)',
    }
    onnx = "program = modelport.OnnxProgram(captured, modelport.OnnxConfig(), 23)\ngot = program(**inputs)"
    example = Trial(program.sizes, program.seed, program.plain, True).text(program)
    lines = [
        f"# seed {one.seed}, {one.way}: {one.verdict}",
        *(f"# {line}" for line in one.what.splitlines()),
        program.source,
        "",
        "import modelport",
        "",
        f"captured = modelport.capture(make(), {example}, **{program.options!r})",
    ]
    if one.call:
        lines += [
            f"inputs = {one.call}",
            'print("model", make()(**inputs))',
            ways.get(one.way, onnx),
            'print("got", got)',
        ]
    return "\n".join(lines)
