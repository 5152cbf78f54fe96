"""Solvers of games that do not say what is right, for `--option reference=…` of the public table.

Each takes a game or an environment that was reset and returns the replies that solve it. They read
what the package keeps of the game, and nothing of ours.
"""

from collections import deque
from itertools import product
from typing import Any


def best_button(game: Any) -> list[str]:
    """Press the button with the highest mean, in every turn."""
    means = game.state.game_state["ground_truth"]
    return [f"[{max(means, key=means.get)}]"]


def secret_number(game: Any) -> list[str]:
    return [f"[{game.state.game_state['game_number']}]"]


def secret_code(game: Any) -> list[str]:
    return [f"[{' '.join(map(str, game.state.game_state['secret_code']))}]"]


def followed_ball(game: Any) -> list[str]:
    return [f"[{game.env.ball_pos if hasattr(game, 'env') else game.ball_pos}]"]


def highest_draw(game: Any) -> list[str]:
    """Accept the highest of the values that will be shown."""
    draws = game.state.game_state["draws"]
    return [*["[continue]"] * draws.index(max(draws)), "[accept]"]


def tower(game: Any) -> list[str]:
    """Move the disks from A to C by the usual recursion."""

    def moves(count: int, source: str, target: str, spare: str) -> list[str]:
        if not count:
            return []
        before, after = moves(count - 1, source, spare, target), f"[{source} {target}]"
        return [*before, after, *moves(count - 1, spare, target, source)]

    return moves(len(game.state.game_state["towers"]["A"]), "A", "C", "B")


def lake_path(game: Any) -> list[str]:
    """Walk the shortest way around the holes."""
    state = game.state.game_state
    grid, start, goal = state["grid"], tuple(state["player_pos"]), tuple(state["goal_pos"])
    ways = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
    seen: dict[tuple[int, ...], list[str]] = {start: []}
    queue = deque([start])
    while queue:
        row, column = at = queue.popleft()
        if at == goal:
            return [f"[{way}]" for way in seen[at]]
        for way, (down, right) in ways.items():
            to = (row + down, column + right)
            inside = 0 <= to[0] < len(grid) and 0 <= to[1] < len(grid)
            if inside and to not in seen and grid[to[0]][to[1]] != "H":
                seen[to] = [*seen[at], way]
                queue.append(to)
    return []


def lights(game: Any) -> list[str]:
    """Find the lamps to press by trying the first row and chasing the others."""
    grid = game.state.game_state["grid"]
    size = len(grid)
    known = []
    for first in product((0, 1), repeat=size):
        left, pressed = [list(map(bool, row)) for row in grid], []
        for row in range(size):
            for column in range(size):
                if first[column] if row == 0 else left[row - 1][column]:
                    pressed.append((row, column))
                    for r, c in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)):
                        if 0 <= row + r < size and 0 <= column + c < size:
                            left[row + r][column + c] ^= True
        if not any(map(any, left)):
            known.append([f"[{row} {column}]" for row, column in pressed])
    return min(known, key=len, default=[])


def shortest_way(env: Any) -> list[str]:
    """Search the transitions of a toy text environment whose steps leave nothing to chance."""
    start = int(env.s)
    last = [way for state in env.P.values() for ways in state.values() for way in ways if way[3]]
    best = max(reward for _, _, reward, _ in last)
    seen: dict[int, list[str]] = {start: []}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for action, outcomes in env.P[at].items():
            ((_, to, reward, done),) = outcomes
            if done and reward == best:
                return [*seen[at], str(action)]
            if not done and to not in seen:
                seen[to] = [*seen[at], str(action)]
                queue.append(to)
    return []
