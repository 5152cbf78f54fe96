"""Reward arithmetic: bounds, proper scores, control scores, ties and advantages."""
