"""The append-only log: entries, ports, the in-memory and the Redis Streams adapter."""
