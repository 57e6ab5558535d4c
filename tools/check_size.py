#!/usr/bin/env python3
"""Keeps files and functions small: no source file over 400 lines, no function over 60."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

MAX_FILE = 400
MAX_FUNCTION = 60
FOLDERS = ["src", "python", "tests", "tools", "bench", "examples", "cmake"]
SUFFIXES = {".h", ".cc", ".inc", ".py", ".pyi", ".cmake", ".js", ".mjs", ".css", ".html"}

# Comments and literals of C++, blanked so that their braces do not count. Raw strings come first: they may hold quotes.
CPP_NOISE = re.compile(
    r'R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"'
    r"|//[^\n]*|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
CPP_SCOPE = re.compile(r"\b(namespace|struct|class|union)\b|\bextern\s*$")
# A body follows the closing parenthesis of its parameters, with only qualifiers or a return type in between.
CPP_FUNCTION = re.compile(r"\)\s*(const|noexcept|override|final|mutable|&|\s)*(->[^;={}]*)?(\brequires\b[^;={}]*)?$")
CPP_ACCESS = {"public", "protected", "private"}
CPP_NAME = re.compile(r"([~\w:]+|operator\s*[^\s(]+)\s*\(")


def blanked(match: re.Match[str]) -> str:
    """As many lines as before, and nothing on them."""
    return "\n" * match[0].count("\n") or " "


def python_functions(text: str) -> list[tuple[int, str, int]]:
    """(line, name, lines) of every function."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        (node.lineno, node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, functions)
    ]


def cpp_functions(text: str) -> list[tuple[int, str, int]]:
    """(line, name, lines) of the functions that stand in namespaces or classes.

    Braces are matched, not parsed: a constructor whose initializers use braces is not seen, and nothing that is not a
    function is taken for one.
    """
    found = []
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", "", CPP_NOISE.sub(blanked, text), flags=re.MULTILINE)
    scopes: list[tuple[str, int, str]] = []  # kind, line, name
    header, line, header_line = "", 1, 1
    for char in text:
        if char == "{":
            outside = all(kind == "scope" for kind, _, _ in scopes)
            kind, name = "block", ""
            if outside and CPP_FUNCTION.search(header.rstrip()):
                kind = "function"
                match = CPP_NAME.search(header)
                name = match[1] if match else "?"
            elif outside and CPP_SCOPE.search(header.rstrip()) and "=" not in header:
                kind = "scope"
            scopes.append((kind, header_line, name))
            header = ""
        elif char == "}":
            if scopes:
                kind, start, name = scopes.pop()
                if kind == "function":
                    found.append((start, name, line - start + 1))
            header = ""
        elif char == ";" or (char == ":" and header.strip() in CPP_ACCESS):
            header = ""
        elif header or not char.isspace():
            if not header:
                header_line = line
            header += char
        line += char == "\n"
    return found


def check(root: Path) -> list[str]:
    problems = []
    for file in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*")):
        if file.suffix not in SUFFIXES or not file.is_file():
            continue
        text = file.read_text()
        name = file.relative_to(root)
        lines = len(text.splitlines())
        if lines > MAX_FILE:
            problems.append(f"{name}: {lines} lines; the limit is {MAX_FILE}. Split it by idea")
        functions = []
        if file.suffix == ".py":
            functions = python_functions(text)
        elif file.suffix in {".h", ".cc"}:
            functions = cpp_functions(text)
        for line, function, length in functions:
            if length > MAX_FUNCTION:
                problems.append(f"{name}:{line}: {function} has {length} lines; the limit is {MAX_FUNCTION}")
    return problems


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    problems = check(root)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
