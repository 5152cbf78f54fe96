"""Evaluation: policies on held-out Tasks, recorded, compared, and verified by playing them again.

Scripted policies and endpoints need neither Tinker nor torch; models do.
"""
