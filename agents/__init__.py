"""Policies, rollouts, evaluation, training and the `tokengym` command."""
