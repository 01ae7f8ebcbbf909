"""The copy that is mutated: a package, its tests and what they need, with mutmut's settings.

mutmut leaves decorated functions alone; in the copy a property reads a plain method, which it does mutate.
Module constants and defaults of fields stay as they are: mutmut changes functions only.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.pyc", "runs", "found")
PROPERTY = re.compile(r"^( +)@property\n\1def (\w+)\(self\)", re.MULTILINE)
CHOSEN = ["-k", "not hypothesis and not time_grows and not cost_is_linear"]
"""Tables only. Tests that draw examples take longer than all these: what only they notice lacks a table.
Tests that measure time would fail beside other mutants for that alone."""
PLUGINS = ("no:cacheprovider", "no:xdist", "no:randomly")


@dataclass(frozen=True)
class Target:
    """What is mutated, from where, and who has to notice."""

    root: Path
    package: str
    """Its folder, under the root."""
    tests: tuple[str, ...]
    """Folders or files, under the root."""
    needs: tuple[str, ...] = ()
    """Folders that they read or import besides."""


def copy(target: Target, to: Path) -> None:
    """A fresh copy; what an earlier run has left there goes."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for name in _folders(target):
        shutil.copytree(target.root / name, to / name, ignore=NOT_COPIED)
    for path in sorted((to / target.package).rglob("*.py")):
        path.write_text(with_plain_methods(path.read_text("utf-8")), "utf-8")


def with_plain_methods(source: str) -> str:
    """The same module, each property of which reads a method."""
    return PROPERTY.sub(r"\1\2 = property(lambda self: self.\2_())\n\n\1def \2_(self)", source)


def write_settings(target: Target, modules: Sequence[str], to: Path) -> None:
    """Tell mutmut, in the copy, what to mutate and which tests to run."""
    args = ["--assert=plain", "--timeout=0", *CHOSEN]
    for plugin in PLUGINS:
        args += ["-p", plugin]
    settings = {
        "source_paths": [target.package.partition("/")[0]],
        "only_mutate": [f"{target.package}/{module}.py" for module in modules or ["*"]],
        "also_copy": _folders(target),
        "pytest_add_cli_args_test_selection": target.tests,
        "pytest_add_cli_args": args,
        "track_dependencies": False,
        "use_setproctitle": False,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    pytest = (target.root / "pyproject.toml").read_text("utf-8")
    (to / "pyproject.toml").write_text("\n".join([pytest, "[tool.mutmut]", *lines, ""]), "utf-8")


def _folders(target: Target) -> list[str]:
    named = (target.package, *target.tests, *target.needs)
    return sorted({name.partition("/")[0] for name in named})
