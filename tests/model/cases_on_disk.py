"""The handed cases that are about objects and words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).parent / "cases"


def load(case: str, name: str) -> Any:
    """One file of a case; several documents as a list."""
    (folder,) = CASES.glob(f"{case}-*")
    documents = list(yaml.safe_load_all((folder / name).read_text(encoding="utf-8")))
    return documents[0] if len(documents) == 1 else documents
