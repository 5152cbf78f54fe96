"""A warehouse in text: which orders to pick together and how to walk, and what to reorder when."""

from tokengym.envs.core.spec import WorldSpec
from tokengym.rewards.bounds import UNIT
from tokengym.rewards.control import FlatFloor, bounded_score
from tokengym.rewards.form import FORM_SHARE, FormAccount

SPEC = WorldSpec(
    id="tokengym/Warehouse-v0",
    summary="A shift lead batches orders, routes trips and reorders stock, exactly scored.",
    entry_point="tokengym.envs.warehouse.world:WarehouseWorld",
    baselines="tokengym.envs.warehouse.baselines:BASELINES",
    roles=("lead",),
    demonstrations="tokengym.envs.warehouse.demonstrations:demonstrate",
    violation="refused",
    turn_limits={
        "pick_small": 6,
        "pick": 12,
        "pick_large": 24,
        "pick_online": 24,
        "stock_small": 8,
        "stock": 10,
        "stock_large": 8,
        "inventory_0": 50,
        "inventory_4": 50,
        "inventory_lost": 50,
        "lease_small": 8,
        "lease": 12,
        "full": 18,
        "full_pickers": 28,
        "full_volatile": 48,
    },
    step_range={"lead": UNIT},
    return_range={"lead": UNIT},
    render="tokengym.envs.warehouse.picture:render_episode",
    metrics="tokengym.envs.warehouse.report:METRICS",
    blind="tokengym.envs.warehouse.blind:blind",
    planners=("replan",),
    flat_floor=FlatFloor(
        FormAccount(1).earned(bounded_score(0.0)) + FORM_SHARE,
        0.0,
        "a shift worse than one order at a time, in order, earns 0",
    ),
)
