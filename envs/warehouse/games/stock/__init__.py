"""Keeping stock: what to reorder against random demand. The optimum is exact."""

from tokengym.envs.warehouse.games.game import Game
from tokengym.envs.warehouse.games.stock.baselines import POLICIES, blind
from tokengym.envs.warehouse.games.stock.generator import draw
from tokengym.envs.warehouse.games.stock.oracle import solve
from tokengym.envs.warehouse.games.stock.session import StockSession, read

GAME = Game("stock", "stock", draw, solve, read, StockSession, POLICIES, blind)
