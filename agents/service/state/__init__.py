"""The state of clients: sessions, runs, samplers, the order of requests and their results."""
