"""A user's own orders and sales: files, checked records, and the windows that levels play."""

from tokengym.envs.warehouse.data.readers import read
from tokengym.envs.warehouse.data.records import OrderBook, SalesHistory, WarehouseRecords

__all__ = ["OrderBook", "SalesHistory", "WarehouseRecords", "read"]
