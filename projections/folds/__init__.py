"""Pure folds: entry by entry, from a state to a state."""
