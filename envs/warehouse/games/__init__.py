"""The games: each a folder of the same parts, chosen by an instance's mode.

| file | what it holds |
|---|---|
| `generator` | levels, instances, and what happens in them |
| `rules` | the state of an episode and how it changes: no text, no scores |
| `heuristics` | rules of thumb |
| `oracle` | the optimum or a bound, and the reference |
| `session` | a Task's problem, and an episode: replies applied, metrics |
| `prompt_full.jinja`, `prompt_terse.jinja` | what the lead reads |
| `baselines` | scripted policies, and those that ignore the Task |
"""

from collections.abc import Mapping
from types import MappingProxyType

from tokengym.envs.warehouse.games import leasing, picking, stock
from tokengym.envs.warehouse.games.game import Game

GAMES: Mapping[str, Game] = MappingProxyType(
    {game.GAME.mode: game.GAME for game in (picking, stock, leasing)}
)
"""The games by mode."""
