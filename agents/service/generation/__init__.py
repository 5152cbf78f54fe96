"""Sampling: continuous batching over shared prompts, the prefix cache and adapter cache."""
