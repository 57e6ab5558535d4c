"""The one exception of the package: what is wrong, at which line of the model, and a way out."""

from __future__ import annotations

from typing import Any

from .printable import printable

# Codes of what only Python can find. The others are in src/base/error.h, and docs/errors.md has a section for each.
CODES = {
    "E0105": "bad_place",
    "E0106": "unusable_artifact",
    "E0305": "training_mode",
    "E0306": "bad_option",
    "E0307": "missing_package",
    "E0308": "untrusted_code",
    "E0309": "unknown_class",
    "E0310": "no_example",
    "E0311": "cannot_generate",
    "E0312": "bad_prompt",
    "E0313": "bad_observation",
    "E0314": "held_by_runtime",
    "E0315": "client_refuses",
    "E0316": "unknown_model",
    "E0317": "unreachable_hub",
    "E0318": "bad_inputs_file",
    "E0319": "bad_quantization",
}


class ExportError(RuntimeError):
    """Something that the user can act on. `str(error)` is the whole report.

    `diagnostics` holds one dict per problem: code, what, file, line, function, module, notes, ways_out.
    """

    def __init__(self, message: str, diagnostics: list[dict[str, Any]] | None = None):
        super().__init__(printable(message))
        self.diagnostics = diagnostics or []

    @property
    def code(self) -> str:
        """The code of the first problem, such as "E0301"; empty if there is none."""
        return self.diagnostics[0]["code"] if self.diagnostics else ""


def problem(code: str, what: str, *ways_out: str, where: dict[str, Any] | None = None) -> ExportError:
    """An ExportError made in Python, in the form that the C++ side prints."""
    where = where or {}
    lines = [f"error[{code}]: {what}"]
    if where.get("line"):
        function = f" in {where['function']}" if where.get("function") else ""
        lines.append(f"  --> {where['file']}:{where['line']}{function}")
    if where.get("module"):
        lines.append(f"   = module  {where['module']}")
    lines += [f"   way out   {way}" for way in ways_out]
    row = {"code": code, "what": what, "file": "", "line": 0, "function": "", "module": "", "notes": []}
    row |= where
    row["ways_out"] = list(ways_out)
    return ExportError("\n".join(lines), [row])
