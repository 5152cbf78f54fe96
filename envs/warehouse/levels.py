"""The levels: the sizes and terms of the instances they draw. Times are whole time units."""

from collections.abc import Mapping
from types import MappingProxyType

from tokengym.envs.warehouse.games.batching.generator import BatchLevel
from tokengym.envs.warehouse.games.buying.generator import BuyingLevel
from tokengym.envs.warehouse.games.leasing.generator import LeaseLevel
from tokengym.envs.warehouse.games.picking.generator import PickLevel
from tokengym.envs.warehouse.games.shop.generator import ShopLevel
from tokengym.envs.warehouse.games.stock.generator import StockLevel

Level = PickLevel | BatchLevel | StockLevel | ShopLevel | BuyingLevel | LeaseLevel

LEVELS: Mapping[str, Level] = MappingProxyType(
    {
        "pick_small": PickLevel((3, 4), 2, 1, 3, 3, 5, 10, decay=20.0),
        "pick": PickLevel((8, 8), 3, 2, 7, 5, 8, 14),
        "pick_large": PickLevel((10, 12), 3, 2, 8, 5, 10, 13, spread=2),
        "pick_online": PickLevel((10, 10), 3, 2, 8, 5, 10, 13, spread=3, announced=False),
        "batch": BatchLevel(12, (2, 8), 14, 6, 12),
        "stock_small": StockLevel(1, 8, (1,), (0.0,), 12),
        "stock": StockLevel(2, 10, (1, 2), (0.0, 0.2, 0.4), 20),
        "stock_large": StockLevel(3, 8, (1,), (0.0,), 6, 2, usual=(0.3, 0.9), delivery=(5, 30)),
        "inventory_0": BuyingLevel(0, (0,)),
        "inventory_4": BuyingLevel(4, (4,)),
        "inventory_lost": BuyingLevel(2, (1, 2, 3, None)),
        "lease_small": LeaseLevel(4, 8, 3, 4),
        "lease": LeaseLevel(8, 12, 4, 6),
        "full": ShopLevel(3, 5, (3, 4), (1,), 1, 4, 6, 40),
        "full_pickers": ShopLevel(4, 6, (4, 5), (1, 2), 2, 4, 8, 30),
        "full_volatile": ShopLevel(6, 6, (1, 6), (2,), 2, 4, 8, 30, fixed=1.5),
    }
)
