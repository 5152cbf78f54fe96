"""Sampling: a batched decoder that keeps conversations, and the weights that clients use."""
