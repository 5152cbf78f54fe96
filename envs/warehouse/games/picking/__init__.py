"""Picking: which orders to walk for together, and by which way. The optimum is exact.

`layout`, `routing` and `orders` say where things are, how far it is and what is asked for.
"""

from tokengym.envs.warehouse.games.game import Game
from tokengym.envs.warehouse.games.picking.baselines import POLICIES, blind
from tokengym.envs.warehouse.games.picking.generator import draw
from tokengym.envs.warehouse.games.picking.oracle import solve
from tokengym.envs.warehouse.games.picking.session import PickSession, read

GAME = Game("picking", "pick", draw, solve, read, PickSession, POLICIES, blind)
