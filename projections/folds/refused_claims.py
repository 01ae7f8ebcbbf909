"""What the API server says of template claims that it refuses to create, again and again (R12).

The outcomes of a round tell it, the next pass learns it before it decides. Gone once the claims are there, or
the VMI no longer waits for them.
"""

from __future__ import annotations

from collections.abc import Mapping

NAME = "refused_claims"
"""Of the read model in the log."""

RefusedClaims = Mapping[str, str]
"""The server's words, by the VMI's uid."""
