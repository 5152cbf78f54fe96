"""Disruption and novelty: citation metrics, paper records, and the adversarial debate over them."""

from tokengym.envs.core.spec import Reachable, WorldSpec
from tokengym.envs.disruption.evidence import LEVELS, NOTED_LEVELS, SINGLE_LEVELS
from tokengym.rewards import debate
from tokengym.rewards.control import FlatFloor

SPEC = WorldSpec(
    id="tokengym/Disruption-v2",
    drawn_since=1,
    summary="Predict whether a paper is disruptive, be challenged, and answer again.",
    entry_point="tokengym.envs.disruption.world:DisruptionWorld",
    render="tokengym.envs.disruption.picture:render_episode",
    baselines="tokengym.envs.disruption.baselines:BASELINES",
    roles=("predictor", "challenger"),
    turn_limits={level: 1 if level in SINGLE_LEVELS else 2 for level in LEVELS},
    step_range={"predictor": debate.TOTAL, "challenger": debate.CHALLENGER_TOTAL},
    return_range={"predictor": debate.TOTAL, "challenger": debate.CHALLENGER_TOTAL},
    demonstrations="tokengym.envs.disruption.demonstrations:labelled",
    metrics="tokengym.envs.disruption.report:METRICS",
    scores="tokengym.envs.disruption.classification:classification_scores",
    calibration=("right_final", "confidence"),
    blind="tokengym.envs.disruption.blind:blind",
    paid_at_end=LEVELS,
    reachable={
        **dict.fromkeys(
            ("L0", *SINGLE_LEVELS), Reachable("oracle", "posterior, searched claims", proved=False)
        ),
        "examples": Reachable(
            "oracle", "posterior over literatures and labels, searched claims", proved=False
        ),
        **dict.fromkeys(
            NOTED_LEVELS,
            Reachable("oracle", "posterior over challengers and papers, searched claims", False),
        ),
    },
    ladders="tokengym.envs.disruption.ladders:LADDERS",
    training={"label": "expected"},
    # Scripted predictors do not change their minds: a challenger would have nothing to learn.
    opponents={"challenger": "scripted", "predictor": "model"},
    evaluation={"label": "outcome"},
    check_options={"label": "expected"},
    flat_floor=FlatFloor(0.6, -1.0, "a wrong final label earns -1, whatever its reasons"),
)
