"""Node selectors as core/v1 writes them. Their meaning is in `binder.core.nodes`; here are only the words."""

from __future__ import annotations

from functools import cached_property

from model.meta import Lean
from model.taints import is_label_key, is_label_value


class NodeSelectorRequirement(Lean):
    """One condition on a node's label or field; `operator` is kept as written."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()

    @cached_property
    def is_label_condition(self) -> bool:
        """Whether its words can stand on an object: a label's key and labels' values.

        Told once: a requirement meets every node.
        """
        return is_label_key(self.key) and all(map(is_label_value, self.values))


class NodeSelectorTerm(Lean):
    """Conditions that must all hold. A term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Lean):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class LabelSelector(Lean):
    """Conditions on an object's labels, which must all hold; one without any matches every object."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
