"""Batching: which orders to walk for together, to walk the least. The optimum is a bound.

The order batching problem as its literature has it, with tours in S-shape.
"""

from tokengym.envs.warehouse.games.batching.baselines import POLICIES
from tokengym.envs.warehouse.games.batching.generator import draw
from tokengym.envs.warehouse.games.batching.oracle import solve
from tokengym.envs.warehouse.games.batching.session import BatchSession, read
from tokengym.envs.warehouse.games.game import Game
from tokengym.envs.warehouse.games.picking.baselines import blind

GAME = Game("batching", "batch", draw, solve, read, BatchSession, POLICIES, blind)
