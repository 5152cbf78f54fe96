"""What clients hold: sessions, runs, samplers, the order of requests and their results."""
