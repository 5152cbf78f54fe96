"""A user's own orders and sales: files, checked records, and the windows that levels play."""

from tokengym.envs.warehouse.data.batching import BatchingInstances, read_batching
from tokengym.envs.warehouse.data.columns import Refusal
from tokengym.envs.warehouse.data.inventory_bench import InventoryBench, read_inventory_bench
from tokengym.envs.warehouse.data.orders_file import read_layout, read_orders, read_slots
from tokengym.envs.warehouse.data.readers import read
from tokengym.envs.warehouse.data.records import OrderBook, Records, SalesHistory
from tokengym.envs.warehouse.data.sales_file import read_demand

__all__ = [
    "BatchingInstances",
    "InventoryBench",
    "OrderBook",
    "Records",
    "Refusal",
    "SalesHistory",
    "read",
    "read_batching",
    "read_demand",
    "read_inventory_bench",
    "read_layout",
    "read_orders",
    "read_slots",
]
