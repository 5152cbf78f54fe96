"""The trials of a server of the Tinker protocol, in one list, and what a lack means."""

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any, NamedTuple, get_args

import tinker

from tokengym.agents.conform.answers import WAIT, Answers
from tokengym.agents.conform.bench import REFUSALS, TrialServer
from tokengym.agents.training.connection import Connection, ServiceRefusedError, refusal
from tokengym.agents.training.job import Job
from tokengym.agents.training.policy_trainer import service_session

_REASON = 120  # characters of what a server says


class Trial(NamedTuple):
    """Something that a server does or does not do.

    Attributes:
        name: what it is.
        needs: trials without which it cannot be tried.
        lack: what it means if it is not done.
        ask: tries it; returns what else is worth showing, or raises.
    """

    name: str
    needs: tuple[str, ...]
    lack: str
    ask: Callable[[TrialServer], Awaitable[Any]]


class TrialFinding(NamedTuple):
    """How a trial ended.

    Attributes:
        name: of the trial.
        missing: why it failed; empty if it did not.
        note: what else was found, or what it means that it failed.
        status: status and route of the last answer.
    """

    name: str
    missing: str
    note: str
    status: str = ""

    def __str__(self) -> str:
        """A row of the table."""
        done = "no " if self.missing else "yes"
        words = "; ".join(filter(None, (self.missing, self.note)))
        return f"{self.name:28} {done} {self.status:38} {words}".rstrip()


_UNLOAD = "unload_model"
_NOT_TRIED = ("custom", "stable_reinforce")  # runs in the client; wants recorded samples
_LOSSES = [name for name in get_args(tinker.types.LossFnType) if name not in _NOT_TRIED]
_RUN, _SAMPLES, _STATE = ("training run",), ("samples",), ("save_state",)
_GREEDY, _GAP = ("temperature 0",), ("gap",)
_LOSS = "runs with this loss end at once"
_WHOLE = "replies come from the whole distribution"
_RATIO = "ratios are 1 only where the whole distribution is sampled at temperature 1"

TRIALS: tuple[Trial, ...] = (
    Trial("connection", (), "nothing can be asked", TrialServer.connect),
    Trial("model", ("connection",), "nothing can be trained", TrialServer.find_model),
    Trial("training run", ("model",), "nothing can be trained", TrialServer.start_run),
    *(Trial(f"loss {loss}", _RUN, _LOSS, partial(TrialServer.loss, name=loss)) for loss in _LOSSES),
    Trial("weights for sampling", _RUN, "nothing can be sampled", TrialServer.save_weights),
    Trial("samples", ("weights for sampling",), "nothing can be sampled", TrialServer.sample),
    Trial("seed", _SAMPLES, "a run does not repeat", TrialServer.repeat),
    Trial("temperature 0", _SAMPLES, "greedy policies are not greedy", TrialServer.sample_greedily),
    Trial("top_k", _GREEDY, _WHOLE, partial(TrialServer.truncate, top_k=1)),
    Trial("top_p", _GREEDY, _WHOLE, partial(TrialServer.truncate, top_p=1e-6)),
    Trial("stop", _GREEDY, "replies run on to their longest", TrialServer.stop),
    Trial("compute_logprobs", _SAMPLES, "no penalty to a reference", TrialServer.score_prompt),
    Trial(
        "topk_prompt_logprobs",
        _SAMPLES,
        "no alternatives to a token",
        TrialServer.score_alternatives,
    ),
    Trial(
        "gap",
        ("loss cross_entropy", "samples"),
        "ratios of fresh samples are not 1",
        TrialServer.gap,
    ),
    Trial("logprobs under top_k", _GAP, _RATIO, partial(TrialServer.gap, top_k=2)),
    Trial("logprobs under temperature", _GAP, _RATIO, partial(TrialServer.gap, temperature=0.5)),
    Trial("optim_step", _RUN, "nothing can be trained", TrialServer.optim_step),
    Trial(
        "gap after steps", ("gap", "optim_step"), "samples are stale", TrialServer.gap_after_steps
    ),
    Trial("save_state", _RUN, "a run cannot be resumed", TrialServer.save_state),
    Trial("resume", _STATE, "a run cannot be resumed", TrialServer.resume),
    Trial("weights_info", _STATE, "lost states are found late", TrialServer.find_state),
    Trial("ttl_seconds", _STATE, "old states stay", TrialServer.limit_state),
    Trial("delete", _STATE, "old states stay", TrialServer.delete_state),
    Trial(
        "refuses an unknown model", _RUN, "another model may be trained", TrialServer.refuse_model
    ),
    Trial(
        "refuses an unknown token", _SAMPLES, "mistakes are trained on", TrialServer.refuse_token
    ),
    Trial(
        "refuses a deleted state",
        ("delete",),
        "a run resumes from nothing",
        TrialServer.refuse_state,
    ),
    # Late: the SDK takes no more requests for a training run where this failed.
    Trial(
        "custom loss", ("loss cross_entropy",), "no losses of one's own", TrialServer.custom_loss
    ),
    Trial(_UNLOAD, _RUN, "it holds the adapters of runs that ended", TrialServer.unload),
)
"""All trials, in order; together they use about 20,000 tokens."""


async def try_server(
    bench: TrialServer,
    tell: Callable[[str], None],
    needed: Collection[str] | None = None,
    wait: float = WAIT,
) -> list[TrialFinding]:
    """Try a server, and tell how each trial ends as it does.

    Args:
        bench: the server.
        tell: shows a line to people.
        needed: names of the trials to make, with those that they need, until one fails; all of
            them, whatever fails, if `None`.
        wait: seconds without an answer after which no further trial is made.

    Returns:
        how each trial ended; those whose needs are not met are left out.
    """
    chosen, answers = _with_needs(needed), Answers(tell, wait)
    findings: list[TrialFinding] = []
    passed: set[str] = set()
    stopped = False
    with answers.listening():
        async with service_session(bench.base_url) as bench.service:
            for trial in TRIALS:
                wanted = trial.name in chosen and (trial.name == _UNLOAD or not stopped)
                if not wanted or not passed.issuperset(trial.needs):
                    continue
                findings.append(await _outcome(trial, bench, answers))
                tell(str(findings[-1]))
                if not findings[-1].missing:
                    passed.add(trial.name)
                elif needed is not None or answers.silent:
                    stopped = True
    return findings


async def require_server(job: Job, connection: Connection, tell: Callable[[str], None]) -> None:
    """Try what a job needs of a server that is not ours.

    Raises:
        ServiceRefusedError: naming the first lack.
    """
    loss = job.config.token_loss
    needed = ["optim_step", "samples", "stop", "save_state", f"loss {loss}"]
    needed += ["loss cross_entropy"] if job.learning.warm_start else []
    needed += ["compute_logprobs"] if job.learning.kl else []
    bench = TrialServer(connection.base_url, connection.model, job.config.lora_rank, loss)
    for row in await try_server(bench, tell, needed):
        if row.missing and row.name != _UNLOAD:
            lack = f"{row.name} ({row.missing})"
            raise ServiceRefusedError(f"the service lacks what the run needs: {lack}")


async def _outcome(trial: Trial, bench: TrialServer, answers: Answers) -> TrialFinding:
    """Make a trial, and return how it ended."""
    try:
        note = await answers.bounded(trial.ask(bench)) or ""
    except (ServiceRefusedError, *REFUSALS) as error:
        missing = refusal(error) or type(error).__name__
        return TrialFinding(trial.name, missing[:_REASON], trial.lack, answers.last)
    return TrialFinding(trial.name, "", note[:_REASON], answers.last)


def _with_needs(names: Collection[str] | None) -> set[str]:
    """Return the names of trials and of all that they need; of all trials if `None`."""
    chosen = {trial.name for trial in TRIALS} if names is None else {*names, _UNLOAD}
    for trial in reversed(TRIALS):
        if trial.name in chosen:
            chosen.update(trial.needs)
    return chosen
