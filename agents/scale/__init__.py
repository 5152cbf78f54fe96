"""Scales of levels: what named policies earn, skill from blind to oracle, and the ladder of rungs.

Training, evaluation, adapters and reports read it; `level_scale` has the scale, `ladder` the rungs.
"""
