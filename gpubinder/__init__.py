"""The command line, the settings and the wiring: the only package that builds real clients."""
