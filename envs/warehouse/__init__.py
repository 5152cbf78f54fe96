"""A warehouse in text: orders to pick together, stock to reorder, storage to lease out."""

from tokengym.envs.core.spec import Reachable, WorldSpec
from tokengym.envs.warehouse.levels import LEVELS
from tokengym.rewards.bounds import UNIT
from tokengym.rewards.control import FlatFloor, bounded_score
from tokengym.rewards.form import FORM_SHARE, FormAccount


def _exact(method: str) -> Reachable:
    return Reachable("oracle", method, proved=True)


SPEC = WorldSpec(
    id="tokengym/Warehouse-v1",
    drawn_since=0,
    summary="A shift lead picks orders, reorders stock or leases out storage, exactly scored.",
    entry_point="tokengym.envs.warehouse.world:WarehouseWorld",
    baselines="tokengym.envs.warehouse.baselines:BASELINES",
    roles=("lead",),
    demonstrations="tokengym.envs.warehouse.baselines:demonstrate",
    violation="refused",
    turn_limits={name: level.turns for name, level in LEVELS.items()},
    step_range={"lead": UNIT},
    return_range={"lead": UNIT},
    render="tokengym.envs.warehouse.picture:render_episode",
    metrics="tokengym.envs.warehouse.report:METRICS",
    blind="tokengym.envs.warehouse.blind:blind",
    paid_at_end=tuple(LEVELS),
    planners=("restarts", "replan", "unread_replan"),
    only_at=dict.fromkeys(("unread", "unread_replan"), ("pick_clauses",)),
    reachable={
        **dict.fromkeys(("pick", "aisle", "pick_clauses"), _exact("exact search")),
        "pick_online": Reachable(
            "replan", "exact search over the orders known so far", proved=False
        ),
        **dict.fromkeys(("stock", "stock_large", "lease"), _exact("stochastic DP")),
    },
    ladders="tokengym.envs.warehouse.ladders:LADDERS",
    flat_floor=FlatFloor(
        FormAccount(1).earned(bounded_score(0.0)) + FORM_SHARE,
        0.0,
        "a shift worse than one order at a time, in order, earns 0",
    ),
)
