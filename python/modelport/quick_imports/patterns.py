"""Regular expressions that are compiled when somebody searches with them.

transformers has a thousand of them to rename the stored weights of its models; a model needs a handful."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any


class PatternWhenAsked:
    __slots__ = ("_flags", "_text")

    def __init__(self, text: str, flags: int = 0):
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        return getattr(re.compile(self._text, self._flags), name)


def compile_when_asked(module: Any) -> None:
    """What the module compiles from now on."""
    expressions = ModuleType("re")
    vars(expressions).update({**vars(re), "compile": PatternWhenAsked})
    module.re = expressions
