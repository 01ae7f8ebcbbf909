"""Node selectors as core/v1 writes them. Their meaning is in `binder.core.nodes`; here are only the words."""

from __future__ import annotations

from model.meta import Lean


class NodeSelectorRequirement(Lean):
    """One condition on a node's label or field; `operator` is kept as written."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Lean):
    """Conditions that must all hold. A term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Lean):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()
