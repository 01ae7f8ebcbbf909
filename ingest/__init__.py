"""Kubernetes to log: list and watch loops, lean objects, append once."""
