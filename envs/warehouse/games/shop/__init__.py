"""Running a shop: every day a reorder, then the day's orders. The optimum is a bound."""

from tokengym.envs.warehouse.games.game import Game
from tokengym.envs.warehouse.games.shop.baselines import POLICIES, blind
from tokengym.envs.warehouse.games.shop.generator import draw
from tokengym.envs.warehouse.games.shop.oracle import solve
from tokengym.envs.warehouse.games.shop.session import ShopSession, read

GAME = Game("shop", "full", draw, solve, read, ShopSession, POLICIES, blind)
