"""Buying one article by the rules of InventoryBench. The optimum is a bound."""

from tokengym.envs.warehouse.games.buying.baselines import POLICIES, blind
from tokengym.envs.warehouse.games.buying.generator import draw
from tokengym.envs.warehouse.games.buying.oracle import solve
from tokengym.envs.warehouse.games.buying.session import BuyingSession, read
from tokengym.envs.warehouse.games.game import Game

GAME = Game("buying", "supply", draw, solve, read, BuyingSession, POLICIES, blind)
