"""A pytest plugin: a mutant that a drawn example has killed is dead, no smaller example is looked for."""

from __future__ import annotations

from hypothesis import Phase, settings

settings.register_profile("mutants", database=None, phases=(Phase.explicit, Phase.generate))
settings.load_profile("mutants")
