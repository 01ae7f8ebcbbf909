"""The gate on launchers and the checks in front of the API server."""
