"""Adapters of the log; built by `gpubinder` alone."""
