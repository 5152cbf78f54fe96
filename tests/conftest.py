"""Settings of every test."""

from hypothesis import settings

# A deadline measures the machine, and machines that run tests are shared: only laws may fail here.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")
