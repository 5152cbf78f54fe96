"""The Tinker bridge: the only part of the project that imports tinker, torch or transformers.

Its public names are those of `tokengym.agents`.
"""
