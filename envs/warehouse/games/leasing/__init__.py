"""Leasing out storage: quoting prices to customers who come and go. The optimum is exact."""

from tokengym.envs.warehouse.games.game import Game
from tokengym.envs.warehouse.games.leasing.baselines import POLICIES, blind
from tokengym.envs.warehouse.games.leasing.generator import draw
from tokengym.envs.warehouse.games.leasing.oracle import solve
from tokengym.envs.warehouse.games.leasing.session import LeaseSession, read

GAME = Game("leasing", "lease", draw, solve, read, LeaseSession, POLICIES, blind)
