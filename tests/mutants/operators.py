"""Mutants that mutmut doesn't make by itself: a call swapped for its opposite, a statement left out."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from mutmut.mutation.mutators import mutation_operators

OPPOSITES = {"min": "max", "max": "min", "all": "any", "any": "all", "sorted": "list"}
"""`sorted` without its order is a list: R4 lets no loop run over what has no order."""


def swapped_call(node: cst.Call) -> Iterator[cst.Call]:
    """The opposite function, of the same arguments; a list takes only one."""
    if isinstance(node.func, cst.Name) and node.func.value in OPPOSITES:
        opposite = OPPOSITES[node.func.value]
        args = node.args[:1] if opposite == "list" else node.args
        yield node.with_changes(func=cst.Name(opposite), args=args)


def removed_statement(node: cst.Expr) -> Iterator[cst.Pass]:
    """A call that is there for what it does is not made."""
    if isinstance(node.value, cst.Call):
        yield cst.Pass(semicolon=node.semicolon)


def install() -> None:
    """Let mutmut make these too."""
    mutation_operators.extend([(cst.Call, swapped_call), (cst.Expr, removed_statement)])  # type: ignore[attr-defined]
