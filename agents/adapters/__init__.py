"""Worlds in other trainers and evaluators, one module each, over `tokengym.envs.Rollouts`.

Each module needs the package it is named for, which an extra of the same name installs, and
imports nothing of the others: some of them cannot share an environment.
"""
