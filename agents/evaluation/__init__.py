"""Evaluation: policies on held-out Tasks, recorded, compared, and verified by replay.

Scripted policies and endpoints need neither Tinker nor torch; models do.
"""
