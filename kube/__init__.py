"""The Kubernetes API as a small client port.

`port` says what a client can do, `errors` what can go wrong, `adapters` holds the one that speaks HTTP.
The simulator implements the same port in memory. Objects are plain JSON dictionaries here; who reads one
turns it into a model of `model`. Must not know: claims, passes, Redis.
"""
