"""Contract tests for any world and reward, and Hypothesis strategies to write more.

Everything public is in `tokengym.testing`.
"""

try:
    import hypothesis as _hypothesis  # noqa: F401
except ImportError as _error:
    raise ImportError(
        "tokengym.testing needs Hypothesis: pip install 'tokengym[testing]'"
    ) from _error
