"""A seeded in-memory cluster behind the real client port, its actors, and an HTTP face."""
