"""Scales of levels: returns of named policies, skill, and the ladder of reference policies.

Training, evaluation, adapters and reports read it; `level_scale` has the scale, `ladder` the
reference policies.
"""
