"""Scripted shift leads. All but the oracle use only what the Turns have shown.

| policy | picks | reorders | buys (`inventory`) | quotes (`lease`) |
|---|---|---|---|---|
| `null` | nothing | nothing | nothing | nothing |
| `random` | up to three orders, at random | up to twice the mean demand | the same | any price |
| `fcfs` | one order at a time, the reference | lean, the reference | what was usual | the lowest |
| `edd_sshape` | earliest due date, S-shape | lean | what was usual | the lowest |
| `worked` | as `edd_sshape`, after its arithmetic | lean | what was usual | the lowest |
| `edd_exact` | earliest due date, shortest tour | lean | what was usual | the lowest |
| `newsvendor` | as `edd_exact` | balances too few and too many | capped base stock | myopic |
| `replan` | best for the orders shown | optimal for the demand shown | adaptive | optimal |
| `noisy` | `edd_exact` misread and mixed | `newsvendor`, units off | off | myopic, off |
| `oracle` | the best plan, from any state | optimal; in `full` the plan | hindsight | optimal |
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tokengym.envs.core.play import Policy
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.warehouse.world import WarehouseWorld

_NAMES = (
    *("null", "random", "fcfs", "edd_sshape", "worked", "edd_exact"),
    *("newsvendor", "replan", "noisy", "oracle"),
)


def _policy(name: str) -> Policy:
    """Return a policy, which in a game that does not know its name plays as `fcfs`."""

    def reply(world: World, _turn: Turn, rng: np.random.Generator) -> str:
        session = WarehouseWorld.cast(world).session
        policies = session.compiled.game.policies
        return policies.get(name, policies["fcfs"])(session, rng)

    return reply


BASELINES: Mapping[str, Policy] = MappingProxyType({name: _policy(name) for name in _NAMES})
