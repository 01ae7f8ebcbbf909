"""The size limits and the habits of the house, held by a test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "gpubinder", "model", "eventlog", "kube", "ingest", "binder", "projections", "admission", "simulator",
)  # fmt: skip
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 5
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError|pytest\.mark\.(skip|xfail))\b")


def sources() -> Iterator[Path]:
    for package in (*PACKAGES, "tests"):
        yield from sorted((ROOT / package).rglob("*.py"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for item in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            yield item


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", list(sources()), ids=named)
def test_file_keeps_the_limits_of_the_house(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    assert lines <= MAX_FILE_LINES, f"{lines} lines; split it by idea"
    assert path.stem not in VAGUE_NAMES, "no domain word fits: the idea is not clear yet"
    for function in functions(path):
        length = (function.end_lineno or 0) - function.lineno + 1
        assert length <= MAX_FUNCTION_LINES, f"{function.name} has {length} lines"
        if PACKAGES and path.is_relative_to(ROOT / "tests"):
            continue
        parameters = [
            a for a in function.args.posonlyargs + function.args.args if a.arg not in ("self", "cls")
        ]
        count = len(parameters) + len([a for a in function.args.kwonlyargs if a.arg])
        assert count <= MAX_PARAMETERS or _is_command(function), f"{function.name} takes {count} parameters"
    if path != Path(__file__):
        assert not UNFINISHED.search(text), "finish it, or say in the note what is missing"


def _is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A command's parameters are its options: click hands them over one by one."""
    return any("command" in ast.unparse(decorator) for decorator in function.decorator_list)


def test_no_file_names_a_registry_or_a_path_of_one_machine() -> None:
    """A lock file pins versions, not hosts; a path is given, never assumed."""
    forbidden = re.compile(r"(index-url|GOPROXY=|--registry|pypi\.org|/home/\w+/|/root/)")
    found = [
        named(path)
        for pattern in ("*.txt", "*.lock", "*.toml", "*.py", "*.yaml", "*.yml", "Makefile", ".ci/run", "*.md")
        for path in ROOT.rglob(pattern)
        if not {".venv", ".git", "build"} & set(path.parts)
        and path != Path(__file__)
        and forbidden.search(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert found == []
