"""Adapters of the client port that speak to a real server; built by `gpubinder` alone."""
