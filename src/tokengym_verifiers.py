"""The id by which verifiers loads the worlds: `tokengym-verifiers`.

verifiers takes the name of a top-level module for an id. Before 0.4 it calls `load_environment`
here; from 0.4 on it looks for a taskset, an environment and a harness.
"""

from importlib.metadata import version

if int(version("verifiers").split(".")[1]) < 4:
    from tokengym.agents.adapters.verifiers import WorldMultiTurnEnv, load_environment

    __all__ = ["WorldMultiTurnEnv", "load_environment"]
else:
    from tokengym.agents.adapters.verifiers_v1 import ChatHarness, WorldEnv, WorldTaskset

    __all__ = ["ChatHarness", "WorldEnv", "WorldTaskset"]
