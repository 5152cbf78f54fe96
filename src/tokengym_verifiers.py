"""The id by which verifiers loads the worlds: `tokengym-verifiers`.

verifiers takes the name of a top-level module for an id, and looks for a taskset, an environment
and a harness in it.
"""

from tokengym.agents.adapters.verifiers import ChatHarness, WorldEnv, WorldTaskset

__all__ = ["ChatHarness", "WorldEnv", "WorldTaskset"]
