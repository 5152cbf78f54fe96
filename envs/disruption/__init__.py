"""Disruption and novelty: citation metrics, paper records, and the adversarial debate over them."""
