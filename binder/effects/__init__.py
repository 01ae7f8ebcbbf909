"""Decisions carried out: each write with a precondition, the sets side by side, each set in its order."""
