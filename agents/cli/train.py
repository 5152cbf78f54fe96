"""`tokengym train`: train a policy on a world, on this laptop or on a Tinker service."""

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tokengym.agents.cli.extras import require_extra
from tokengym.agents.cli.failures import describe, report_if_killed
from tokengym.agents.cli.options import name_texts, name_values
from tokengym.agents.cli.train_summary import resume_advice, resume_command, summarise
from tokengym.agents.evaluation.config import WorldLevel
from tokengym.agents.training.config import TrainConfig
from tokengym.agents.training.presets import mixed_preset
from tokengym.agents.training.run import Run, is_run
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import spec

if TYPE_CHECKING:
    from tokengym.agents.training.progress import Progress

COLLAPSED = 3
"""Exit status of a run that lost its signal."""
_INTERRUPTED = 130
"""Exit status of a command that was interrupted, by the shells' convention."""


def train(
    world: Annotated[
        str | None,
        typer.Argument(
            help="id or short name, such as forecast; several at once: forecast,energy:small; not "
            "with --resume"
        ),
    ] = None,
    level: Annotated[str | None, typer.Option(help="level of the world")] = None,
    option: Annotated[list[str] | None, typer.Option(help="name=value, a world's option")] = None,
    data: Annotated[Path | None, typer.Option(help="a file of your own data")] = None,
    steps: Annotated[int | None, typer.Option(help="optimizer steps")] = None,
    groups: Annotated[int | None, typer.Option(help="Tasks per step")] = None,
    group_size: Annotated[int | None, typer.Option(help="rollouts of each Task")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="learning rate of Adam")] = None,
    lr_schedule: Annotated[
        str | None,
        typer.Option(help="how the rate changes: constant, or linear or cosine down to 0"),
    ] = None,
    lr_warmup: Annotated[
        int | None, typer.Option(help="first steps, over which the rate rises linearly")
    ] = None,
    rank: Annotated[int | None, typer.Option(help="rank of the LoRA adapter")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="token limit of a reply")] = None,
    temperature: Annotated[float | None, typer.Option(help="sampling temperature")] = None,
    model: Annotated[str | None, typer.Option(help="model directory or hosted model")] = None,
    trust_remote_code: Annotated[
        bool,
        typer.Option("--trust-remote-code", help="run code that comes with the model"),
    ] = False,
    renderer: Annotated[str | None, typer.Option(help="name of a cookbook renderer")] = None,
    system: Annotated[
        str | None, typer.Option(help="a system text before every conversation")
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="address of a Tinker service")] = None,
    precision: Annotated[
        str | None,
        typer.Option(help="of a local service: auto, float32 or bfloat16"),
    ] = None,
    memory: Annotated[
        float | None, typer.Option(help="GiB that a local service stays within")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="seed of the training Tasks")] = None,
    deterministic: Annotated[
        bool,
        typer.Option("--deterministic", help="equal runs are exactly equal; slower"),
    ] = False,
    mode: Annotated[str | None, typer.Option(help="sync, stream or async")] = None,
    evaluation_tasks: Annotated[int | None, typer.Option(help="held-out Tasks")] = None,
    low_temperature: Annotated[
        float | None, typer.Option(help="of a second, smaller evaluation before and after")
    ] = None,
    low_tasks: Annotated[
        int | None, typer.Option(help="held-out Tasks of that evaluation; 0 for none")
    ] = None,
    role: Annotated[str | None, typer.Option(help="the role to train (default: the first)")] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--opponent",
            help="ROLE=WHO plays another role: a baseline, model (untrained), a run folder or a "
            "tinker:// path",
        ),
    ] = None,
    self_play: Annotated[
        bool, typer.Option("--self-play", help="train all roles against each other")
    ] = False,
    separate: Annotated[
        bool, typer.Option("--separate", help="in self-play, one policy for each role")
    ] = False,
    sft: Annotated[
        bool, typer.Option("--sft", help="no RL: fit demonstrations by cross-entropy")
    ] = False,
    dpo: Annotated[
        Path | None,
        typer.Option(help="no RL: fit preferences between the rollouts of this run"),
    ] = None,
    dpo_margin: Annotated[
        float | None, typer.Option(help="smallest difference of return in a preference")
    ] = None,
    dpo_beta: Annotated[
        float | None, typer.Option(help="DPO: weight of the penalty for leaving the initial policy")
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(help="distil this run folder or tinker:// path, on the policy's own rollouts"),
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="run folder or tinker:// path of weights to begin with")
    ] = None,
    warm_start: Annotated[
        int | None, typer.Option(help="supervised steps on demonstrations before RL")
    ] = None,
    warm_start_rate: Annotated[
        float | None, typer.Option(help="learning rate of those steps (default: --learning-rate)")
    ] = None,
    warm_start_updates: Annotated[
        int | None,
        typer.Option(help="optimizer steps in each of those steps (default: 1)"),
    ] = None,
    demonstrations: Annotated[
        str | None,
        typer.Option(
            help="what supervised steps imitate: a baseline, or the best rollouts of a run"
        ),
    ] = None,
    demonstration_return: Annotated[
        float | None, typer.Option(help="smallest return of a run's rollout to imitate")
    ] = None,
    kl: Annotated[
        float | None, typer.Option(help="weight of the KL penalty to the initial policy")
    ] = None,
    curriculum: Annotated[
        list[str] | None, typer.Option(help="a level to pass first; give several, easiest first")
    ] = None,
    bar: Annotated[
        float | None, typer.Option(help="skill that passes a level of the curriculum")
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="steps without signal that end a run; 0 for never")
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            help="group_centred, group_standardised, leave_one_out, reinforce_plus_plus or remax"
        ),
    ] = None,
    credit: Annotated[str | None, typer.Option(help="episode, turn or exact")] = None,
    filter_: Annotated[
        str | None,
        typer.Option("--filter", help="keep, drop or resample groups without a spread"),
    ] = None,
    min_spread: Annotated[float | None, typer.Option(help="largest spread of a dead group")] = None,
    resample_tokens: Annotated[
        int | None, typer.Option(help="token budget of a step for replacement groups")
    ] = None,
    denominator: Annotated[
        str | None, typer.Option(help="all or live: the groups that normalise the loss")
    ] = None,
    rollout_share: Annotated[
        float | None, typer.Option(help="share of each step's groups to save")
    ] = None,
    rollout_bytes: Annotated[
        int | None, typer.Option(help="limit on saved training rollouts, in bytes")
    ] = None,
    mix: Annotated[
        str | None,
        typer.Option(
            help="of several worlds, the share of Tasks of each: progress (more where more is "
            "learned; the default), even, or shares such as 3,1"
        ),
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="also write the metrics for TensorBoard")
    ] = False,
    loop: Annotated[str | None, typer.Option(help="auto, cookbook or own")] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("--set", help="name=value, any field of tinker_cookbook.rl.train.Config"),
    ] = None,
    run: Annotated[Path | None, typer.Option(help="the run folder to create")] = None,
    resume: Annotated[
        Path | None, typer.Option(help="a run folder to continue, up to --steps")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask before using a key")] = False,
) -> None:
    """Train a policy and report what it earns on held-out Tasks before and after.

    Without TINKER_API_KEY or --base-url the small policy that comes with the package trains on a
    local service; with a key, the model you name trains on Tinker.
    """
    from tokengym.agents.training.progress import Progress

    require_extra("tinker", "training")
    if (world is None) == (resume is None):
        raise OptionError("name a world to train on, or a run folder with --resume, and not both")
    if resume is not None:
        run_to_train = Run.open(resume)
        config = run_to_train.config
        if steps is not None:
            config = replace(config, steps=steps)
    else:
        assert world is not None
        worlds = _worlds(world, level)
        options = name_values(option or [], "--option")
        if data is not None:
            options["data"] = str(data.resolve())
        config = mixed_preset(
            worlds,
            shares=_shares(mix, len(worlds)),
            options=options,
            steps=steps,
            groups_per_batch=groups,
            group_size=group_size,
            learning_rate=learning_rate,
            lr_schedule=lr_schedule,
            lr_warmup=lr_warmup,
            lora_rank=rank,
            max_tokens=max_tokens,
            temperature=temperature,
            model=model,
            trust_remote_code=trust_remote_code or None,
            renderer=renderer,
            system=system,
            base_url=base_url,
            precision=precision,
            memory=memory,
            seed=seed,
            deterministic=deterministic or None,
            mode=mode,
            evaluation_tasks=evaluation_tasks,
            low_temperature=low_temperature,
            low_tasks=low_tasks,
            role=role,
            opponents=_opponents(agent) if agent else None,
            self_play=self_play or None,
            separate=separate or None,
            sft=sft or None,
            dpo=str(dpo.resolve()) if dpo else None,
            dpo_margin=dpo_margin,
            dpo_beta=dpo_beta,
            teacher=_resolved(teacher) if teacher else None,
            start=_resolved(start) if start else None,
            warm_start=warm_start,
            warm_start_rate=warm_start_rate,
            warm_start_updates=warm_start_updates,
            demonstrations=_resolved(demonstrations) if demonstrations else None,
            demonstration_return=demonstration_return,
            kl=kl,
            curriculum=tuple(curriculum) if curriculum else None,
            bar=bar,
            patience=patience,
            estimator=estimator,
            credit=credit,
            filter=filter_,
            min_spread=min_spread,
            resample_tokens=resample_tokens,
            denominator=denominator,
            rollout_share=rollout_share,
            rollout_bytes=rollout_bytes,
            tensorboard=tensorboard or None,
            loop=loop,
            overrides=tuple(override or ()),
        )
        run_to_train = Run(run if run is not None else _new_folder(config))
        if run_to_train.exists:
            folder = run_to_train.folder
            raise OptionError(f"{folder} already holds a run; resume it with --resume {folder}")
    _train(config, run_to_train, Progress(), ask=not yes)


def _train(config: TrainConfig, run: Run, progress: "Progress", *, ask: bool) -> None:
    from tokengym.agents.service import ServiceDiedError
    from tokengym.agents.training.connection import ServiceRefusedError, ServiceTarget

    target = ServiceTarget.resolve(
        config
    )  # what cannot be reached is refused before much is loaded
    from tokengym.agents.experiment import run_experiment
    from tokengym.agents.training.cost import job_cost
    from tokengym.agents.training.job import Job

    job = Job.resolve(config, target)
    if config.max_tokens is None:
        progress.say(
            f"replies of at most {job.max_tokens} tokens, measured on scripted replies; "
            "--max-tokens sets another limit"
        )
    if not job.target.local:
        progress.say(f"this job will use {job_cost(job)}")
        if ask and sys.stdin.isatty():
            typer.confirm("start?", abort=True)
    try:
        with report_if_killed(
            f"the process was killed, or ran out of memory; {resume_command(run)}"
        ):
            outcome = run_experiment(job, run, progress)
    except KeyboardInterrupt as error:
        progress.say(f"stopped\n{resume_advice(job, run)}")
        raise typer.Exit(_INTERRUPTED) from error
    except (ServiceDiedError, ServiceRefusedError, OSError, MemoryError) as error:
        progress.say(f"{describe(error)}\n{resume_advice(job, run)}")
        raise typer.Exit(1) from error
    summarise(job, run, outcome, progress)
    if outcome.collapse is not None:
        raise typer.Exit(COLLAPSED)


def _worlds(names: str, level: str | None) -> list[WorldLevel]:
    """Read `forecast`, or `forecast,energy:small`; `level` applies to a single world.

    Raises:
        UnknownWorldError, OptionError: if a world or a level is unknown, or a level is given twice.
    """
    worlds = [WorldLevel.parse(name.strip()) for name in names.split(",")]
    if level is None:
        return worlds
    if len(worlds) > 1 or ":" in names:
        raise OptionError(f"--level {level} is for one world, as in {names}:{level}; got {names}")
    return [WorldLevel.parse(f"{names}:{level}")]


def _shares(mix: str | None, worlds: int) -> tuple[float, ...]:
    """Read --mix; without shares, they follow progress.

    Raises:
        OptionError: if it is none of its values, or there is only one world.
    """
    if mix is not None and worlds == 1:
        raise OptionError(f"--mix {mix} is for several worlds, as in forecast,energy; got one")
    if mix is None or mix == "progress":
        return ()
    if mix == "even":
        return (1.0,) * worlds
    try:
        return tuple(map(float, mix.split(",")))
    except ValueError:
        raise OptionError(
            f"--mix must be progress, even, or {worlds} numbers such as 3,1, got {mix!r}"
        ) from None


def _opponents(pairs: list[str]) -> dict[str, str]:
    return {role: _resolved(who) for role, who in name_texts(pairs, "--opponent").items()}


def _resolved(who: str) -> str:
    """Name a run folder so that a resume finds it from anywhere; leave other names alone."""
    return str(Path(who).resolve()) if is_run(who) else who


def _new_folder(config: TrainConfig) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    worlds = [(config.world, config.level), *((one.world, one.level) for one in config.others)]
    names = "-".join(f"{spec(world).short_name}-{level}" for world, level in worlds)
    return Path("runs") / f"{names}-{stamp}"
