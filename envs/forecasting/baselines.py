"""Scripted forecasters. All but the oracle use only what the Turns show."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType

import numpy as np

from tokengym.envs.core.play import Policy
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task, to_plain_json
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.forecasting.desk_world import DeskWorld
from tokengym.envs.forecasting.families.base import bernoulli
from tokengym.envs.forecasting.generator import draw, draw_outcomes
from tokengym.envs.forecasting.grammar import write_forecast
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.forecasting.looking import RULES, best_note, write_answer, write_look
from tokengym.envs.forecasting.question import Question, questions
from tokengym.envs.forecasting.world import ForecastWorld
from tokengym.rewards.arrays import Floats
from tokengym.rewards.scoring import Forecast

_LOGIT_NOISE = 0.7
_SURE = 0.02
_EXACT = 6
_RESOLVED, _RIDGE = 200, 10.0


def _null(_world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    return ""


def _random(world: World, _turn: Turn, rng: np.random.Generator) -> str:
    if isinstance(world, DeskWorld):
        note = int(rng.integers(len(world.state) + 1))
        if note < len(world.state) and not world.state[note]:
            return write_look(note)
    question = _question(world)
    return _write(tuple(rng.dirichlet([1.0] * (question.options or 2)).tolist()), question)


def _market(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    """State the market's price or, where the question shows no price, the base rate with a note."""
    question = _question(world)
    if question.price is None:
        rate = _write(base_rate(world), question)
        return f"No price is shown (it needs data and show_prices), so the base rate.\n{rate}"
    return _write(question.price, question)


def _noisy(world: World, _turn: Turn, rng: np.random.Generator) -> str:
    """State the empirical forecast with normal noise on its log-odds."""
    question = _question(world)
    shares = [
        max(_SURE, p) * math.exp(_LOGIT_NOISE * float(rng.normal()) / math.sqrt(2.0))
        for p in _informed(world)
    ]
    total = sum(shares)
    return _write(tuple(share / total for share in shares), question)


def demonstrate(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    """Do the best there is in the form asked for; further decimals would teach noise."""
    if isinstance(world, DeskWorld) and (note := best_note(world)) is not None:
        return write_look(note)
    return _write(_best(world), _question(world))


def _worked(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    """State the middle of the tenth that the empirical forecast is in, after its arithmetic.

    Further decimals would be noise to a model that cannot compute them.
    """
    question, forecast = _question(world), _informed(world)
    if question.options:
        return _write(forecast, question)
    answer = _write(bernoulli((min(9, int(10 * forecast[1])) + 0.5) / 10), question)
    return answer if question.steps is None else f"{question.steps}\n{answer}"


def _write(forecast: Forecast, question: Question, *, decimals: int = 3) -> str:
    if question.called:
        return write_answer(forecast[1], decimals)
    return write_forecast(forecast, question.options, decimals=decimals)


def _fitted(world: World) -> Forecast:
    """State what a regression on 200 resolved questions of the level says; see `regressions`."""
    question = _question(world)
    if not question.family:
        return _informed(world)
    made = ForecastWorld.cast(world)
    weights = regressions(made.level, made.families)[question.family]
    return tuple(_softmax(_features(question) @ weights).tolist())


@cache
def regressions(level: str, families: tuple[str, ...]) -> Mapping[str, Floats]:
    """Fit a conditional logistic regression for each family; return their weights by family.

    The features of an outcome are the logarithm of its empirical probability and, of yes, 1 and
    the question's cues. The ridge penalty draws the weights to those of the empirical forecast.
    """
    from scipy.optimize import minimize

    rng = generator("forecasting regression", level, *families)
    resolved: dict[str, list[tuple[Floats, Floats]]] = defaultdict(list)
    for _ in range(_RESOLVED):
        instance = to_plain_json(draw(rng, families, LEVELS[level]))
        answer = draw_outcomes(instance, rng)
        happened = tuple(np.eye(len(answer["p_bayes"]))[int(answer["outcomes"][0])].tolist())
        resolved[instance["family"]] += [
            (_features(question), np.array(question.weigh(happened)))
            for question in questions(instance, "full")
        ]

    def fit(pairs: Sequence[tuple[Floats, Floats]]) -> Floats:
        start = np.eye(pairs[0][0].shape[1])[0]

        def loss(weights: Floats) -> tuple[float, Floats]:
            moved = weights - start
            total, slope = 0.5 * _RIDGE * float(moved @ moved), _RIDGE * moved
            for features, shares in pairs:
                forecast = _softmax(features @ weights)
                total -= float(shares @ np.log(forecast))
                slope = slope + features.T @ (forecast - shares)
            return total, slope

        weights: Floats = minimize(loss, start, jac=True, method="L-BFGS-B").x
        return weights

    return {family: fit(pairs) for family, pairs in resolved.items()}


def _features(question: Question) -> Floats:
    """Return the features of each outcome, shape (outcomes, features)."""
    assert question.empirical is not None
    logs: Floats = np.log(np.maximum(question.empirical, _SURE))[:, None]
    if question.options:
        return logs
    for_yes = np.outer([0.0, 1.0], [1.0, *question.cues])
    return np.hstack([logs, for_yes])


def _softmax(scores: Floats) -> Floats:
    shares: Floats = np.exp(scores - scores.max())
    shares /= shares.sum()
    return shares


def constants(world: World) -> Mapping[str, Policy]:
    """Return by reply the policies that state k/40, k = 1 to 39, to every yes/no question.

    Of several outcomes they state equal probabilities, of two cases on the same facts what follows
    if each comes true with k/40, independently.
    """
    return {
        f"Probability: {k / 40:.3f}": partial(_state, partial(_constant, k / 40))
        for k in range(1, 40)
    }


def best_constant(world: World, tasks: Sequence[Task]) -> str | None:
    """Return the best of `constants` on Tasks of one turn; `None` if one has more.

    The expected score of a forecast is linear in the true probability, so that of a constant over
    yes/no questions depends on their mean probability alone. Other questions are answered alike.
    """
    forecasts, chances, rule = ForecastWorld.cast(world), [0.0, 0.0], None
    for task in tasks:
        turn, *later = forecasts.compile(task)
        if later:
            return None
        if not turn.question.options:
            rule = turn.rule
            odds = turn.question.predictive or turn.weights
            chances = [chances[0] + odds[0], chances[1] + odds[1]]

    def score(k: int) -> float:
        stated = bernoulli(k / 40)
        return (
            0.0
            if rule is None
            else sum(
                chance * rule(stated, bernoulli(float(happened)))
                for happened, chance in enumerate(chances)
            )
        )

    return f"Probability: {max(range(1, 40), key=score) / 40:.3f}"


def base_rate(world: World) -> Forecast:
    """Return the base rate of the world's yes/no questions; uniform over several outcomes."""
    question = _question(world)
    return (
        _uniform(question) if question.options else bernoulli(ForecastWorld.cast(world).base_rate)
    )


def _constant(share: float, world: World) -> Forecast:
    question = _question(world)
    if question.options:
        return _uniform(question)
    if question.event is None:
        return bernoulli(share)
    states = np.outer(bernoulli(share), bernoulli(share)).ravel()
    return bernoulli(float(states[list(question.event)].sum()))


def _state(
    forecast: Callable[[World], Forecast], world: World, _turn: Turn, _rng: np.random.Generator
) -> str:
    return _write(forecast(world), _question(world))


def _oracle(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    if isinstance(world, DeskWorld) and (note := best_note(world)) is not None:
        return write_look(note)
    return _write(_best(world), _question(world), decimals=_EXACT)


def _looking(
    rule: Callable[[DeskWorld], int | None], world: World, _turn: Turn, _rng: np.random.Generator
) -> str:
    """Look by a rule, then state the empirical forecast: at a desk, the posterior."""
    if isinstance(world, DeskWorld) and (note := rule(world)) is not None:
        return write_look(note)
    return _write(_informed(world), _question(world), decimals=_EXACT)


def _half(world: World) -> Forecast:
    return _uniform(_question(world))


def _best(world: World) -> Forecast:
    return ForecastWorld.cast(world).best_forecast


def _likeliest(world: World) -> Forecast:
    """Return the forecast by the likeliest law, or the fitted one where there is no law to find.

    Source: Fisher, Philosophical Transactions of the Royal Society A 222 (1922).
    """
    return _question(world).likeliest or _fitted(world)


def _informed(world: World) -> Forecast:
    """Return the empirical forecast, or the base rate where no numbers are shown."""
    return _question(world).empirical or base_rate(world)


def _uniform(question: Question) -> Forecast:
    count = question.options or 2
    return (1.0 / count,) * count


def _question(world: World) -> Question:
    return ForecastWorld.cast(world).question


BASELINES: Mapping[str, Policy] = MappingProxyType(
    {
        "null": _null,
        "half": partial(_state, _half),
        "base_rate": partial(_state, base_rate),
        "random": _random,
        "empirical": partial(_state, _informed),
        "fitted": partial(_state, _fitted),
        "likeliest": partial(_state, _likeliest),
        "noisy": _noisy,
        "market": _market,
        "worked": _worked,
        **{name: partial(_looking, rule) for name, rule in RULES.items()},
        "oracle": _oracle,
    }
)
