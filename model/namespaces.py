"""The Namespace, with the labels that budgets select by."""

from __future__ import annotations

from model.meta import Lean, ObjectMeta


class Namespace(Lean):
    """A tenant's place."""

    metadata: ObjectMeta = ObjectMeta()
