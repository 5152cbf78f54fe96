"""Forecast-v0: one question, one probability, scored by a strictly proper rule."""
