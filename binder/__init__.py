"""Log to decisions to Kubernetes: the pure pass in `core`, the consumer loop, the effects."""
