"""Certificates of anybody's environment: one interface to it, checks that use nothing else."""
