"""Scripted shift leads. All but the oracle use only what the Turns have shown.

| policy | picks | reorders | quotes |
|---|---|---|---|
| `null` | nothing | nothing | nothing |
| `random` | up to three orders | up to twice the mean | any price |
| `fcfs` | one at a time | lean | the lowest |
| `edd_sshape` | by due date, S-shape | lean | the lowest |
| `worked` | the same, with its sums | lean | the lowest |
| `edd_exact` | by due date, shortest | lean | the lowest |
| `newsvendor` | as `edd_exact` | balances costs | myopic |
| `textbook` | by value per time | Silver-Meal | by bid price |
| `unread` | `textbook`, at `pick_clauses` as if it stated no clause | | |
| `unread_replan` | `replan`, in the same way | | |
| `restarts` | best of 100 noisy plans | lean | the lowest |
| `replan` | best for those shown | optimal | optimal |
| `noisy` | `edd_exact`, mixed | `newsvendor`, off | myopic, off |
| `oracle` | the best plan | optimal | optimal |

`fcfs` is the reference where there is one.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import numpy as np

from tokengym.envs.core.play import Policy
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.warehouse.world import WarehouseWorld

_NAMES = (
    *("null", "random", "fcfs", "edd_sshape", "worked", "edd_exact"),
    *("newsvendor", "textbook", "unread", "unread_replan", "restarts"),
    *("replan", "noisy", "oracle"),
)


def _reply(name: str, world: World, _turn: Turn, rng: np.random.Generator) -> str:
    """Reply as the policy of a name, which in a game that does not know it plays as `fcfs`."""
    session = WarehouseWorld.cast(world).session
    policies = session.compiled.game.policies
    return policies.get(name, policies["fcfs"])(session, rng)


BASELINES: Mapping[str, Policy] = MappingProxyType({name: partial(_reply, name) for name in _NAMES})


def demonstrate(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Reply like `replan`, but name only the orders of a trip, which then walks an S-shape.

    For supervised learning. The rule depends on nothing but what the Turns have shown. A shortest
    route is a dozen slots in an order that takes a search to find: imitating one, a small model
    loses the form as well.
    """
    return _reply("replan", world, turn, rng).partition(":")[0]
