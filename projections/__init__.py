"""Folds of the log into read models."""
