"""Certificates as tables of a page: one row per level, or one per world for its first level."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tokengym.agents.analysis.markdown import markdown_table
from tokengym.envs.registry import spec

Found = Mapping[str, Any]
"""A certificate as `Certificate.to_dict` gives it."""

SIZES = (4, 8, 16)

LEVELS_HEADER = (
    "world",
    "level",
    "declared",
    "observed",
    "null",
    "random",
    "best rule",
    "oracle",
    "optimum",
    "tied pairs",
    f"dead groups of {'/'.join(map(str, SIZES))}",
    "malformed",
    "bytes",
)
HEADROOM_HEADER = (
    *("world", "level", "Tasks", "best blind policy", "best simple rule", "best honest rule"),
    *("optimum", "closed by the simple rule", "closed by the honest rule"),
)
WORLDS_HEADER = ("world", "what a policy does", "null", "random", "best rule", "optimum")


def levels_table(certificates: Sequence[Found]) -> str:
    """Return the table of levels; the text around it explains the columns."""
    return markdown_table(LEVELS_HEADER, [_level_row(found) for found in certificates])


def worlds_table(certificates: Sequence[Found]) -> str:
    """Return the table of worlds, from the certificate of each one's first level."""
    firsts = [found for found in certificates if found["level"] == spec(found["world"]).levels[0]]
    return markdown_table(WORLDS_HEADER, [_world_row(found) for found in firsts])


def headroom_table(certificates: Sequence[Found]) -> str:
    """Return how far rules get from the best blind policy to the optimum, by level."""
    return markdown_table(HEADROOM_HEADER, [_headroom_row(found) for found in certificates])


BLOCKS: Mapping[str, Callable[[Sequence[Found]], str]] = {
    "tokengym check, by level": levels_table,
    "tokengym check, by world": worlds_table,
    "tokengym check, headroom": headroom_table,
}
"""Blocks of pages that are made of certificates, by name."""


def _level_row(found: Found) -> Sequence[str]:
    returns, ties = found["returns"], found["ties"]
    dead = [ties[f"zero_advantage_probability_{size}"]["value"] for size in SIZES]
    malformed = "" if found["malformed"] is None else f"{found['malformed']:.0%}"
    return (
        spec(found["world"]).short_name,
        f"`{found['level']}`",
        "{:g} to {:g}".format(*found["declared"]),
        "{:.2f} to {:.2f}".format(*found["observed"]),
        _interval(returns["null"]),
        _interval(returns["random"]),
        _best_rule(found, _interval),
        _interval(returns["oracle"]),
        f"{found['optimum']['value']:.3f}{'' if found['exact'] else ' (bound)'}",
        f"{ties['reward_tie_pair_rate']['value']:.3f}",
        " / ".join(f"{rate:.3f}" for rate in dead),
        malformed,
        f"{found['episode_bytes']['value']:,.0f}",
    )


def _world_row(found: Found) -> Sequence[str]:
    world_spec = spec(found["world"])
    return (
        f"`{world_spec.id}`",
        world_spec.summary,
        _mean(found["returns"]["null"]),
        _mean(found["returns"]["random"]),
        _best_rule(found, _mean),
        f"{_mean(found['optimum'])}{'' if found['exact'] else ' (bound)'}",
    )


def _headroom_row(found: Found) -> Sequence[str]:
    planners = spec(found["world"]).planners
    rules = {
        name: value for name, value in found["returns"].items() if name not in ("oracle", "noisy")
    }
    simple = {name: value for name, value in rules.items() if name not in planners}
    best = [max(some, key=lambda name: some[name]["value"]) for some in (simple, rules)]
    blind, optimum = found["blind"]["value"], found["optimum"]["value"]
    return (
        *(spec(found["world"]).short_name, f"`{found['level']}`", str(found["tasks"])),
        _mean(found["blind"]),
        *(f"{_mean(rules[name])} `{name}`" for name in best),
        f"{optimum:.3f}{'' if found['exact'] else ' (bound)'}",
        *(f"{(rules[name]['value'] - blind) / (optimum - blind):.0%}" for name in best),
    )


def _best_rule(found: Found, shown: Callable[[Mapping[str, float]], str]) -> str:
    """The scripted policy with the highest mean; the oracle and its noisy variant know too much."""
    rules = {
        name: value for name, value in found["returns"].items() if name not in ("oracle", "noisy")
    }
    best = max(rules, key=lambda name: rules[name]["value"])
    return f"{shown(rules[best])} `{best}`"


def _interval(value: Mapping[str, float]) -> str:
    return f"{value['value']:.3f} ± {(value['high'] - value['low']) / 2:.3f}"


def _mean(value: Mapping[str, float]) -> str:
    return f"{value['value']:.3f}"
