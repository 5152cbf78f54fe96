"""What a loop in plain Python is given: many prompts, advantages by token, a log; its scripts."""

from __future__ import annotations

import json
import runpy
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tinker
from hypothesis import given
from hypothesis import strategies as st

from tokengym.agents import RunFolder, datum, sample_prompts

if TYPE_CHECKING:
    from tokengym.agents.service import LocalService

# Calls that the SDK deprecates.
pytestmark = pytest.mark.filterwarnings("ignore")

SCRIPTS = Path(__file__).parents[2] / "examples" / "plain_python"


@pytest.fixture
def sampler(starting_service: LocalService) -> Any:
    """A client that samples from the starting policy."""
    client = tinker.ServiceClient(
        base_url=starting_service.base_url, api_key=starting_service.api_key
    )
    return client.create_sampling_client(base_model=starting_service.model_name)


@dataclass
class Counting:
    """A client that notes what it is asked for."""

    client: Any
    asked: list[tuple[tuple[int, ...], int]] = field(default_factory=list)

    def sample(self, prompt: tinker.ModelInput, n: int, params: tinker.SamplingParams) -> Any:
        self.asked.append((tuple(prompt.to_ints()), n))
        return self.client.sample(prompt, n, params)

    def get_tokenizer(self) -> Any:
        return self.client.get_tokenizer()


def test_replies_come_in_order_and_a_prompt_is_read_once(sampler: Any) -> None:
    counting: Any = Counting(sampler)
    prompts: list[Any] = [[5, 6, 7], [5, 6], tinker.ModelInput.from_ints([5, 6, 7]), [9], [5, 6]]
    greedy: dict[str, Any] = {"max_tokens": 4, "temperature": 0.0}
    groups = sample_prompts(counting, prompts, 2, at_once=2, **greedy)
    assert counting.asked == [((5, 6, 7), 4), ((5, 6), 4), ((9,), 2)]
    alone = [sample_prompts(sampler, [prompt], 1, **greedy)[0][0].tokens for prompt in prompts]
    assert [[reply.tokens for reply in group] for group in groups] == [[one] * 2 for one in alone]


def test_repetitions_of_a_prompt_get_replies_of_their_own(sampler: Any) -> None:
    first, second = sample_prompts(sampler, [[5, 6]] * 2, 3, max_tokens=8, seed=1)
    assert [len(first), len(second)] == [3, 3]
    assert [reply.tokens for reply in first] != [reply.tokens for reply in second]


@pytest.mark.parametrize(
    ("prompts", "n", "at_once"), [([[1]], 0, 1), ([[1]], 1, 0), ([[1], []], 1, 1)]
)
def test_what_cannot_be_sampled_is_refused(prompts: Any, n: int, at_once: int) -> None:
    with pytest.raises(ValueError, match=r"at least 1, got|prompt 1 is empty"):
        sample_prompts(Counting(None), prompts, n, at_once=at_once)  # type: ignore[arg-type]
    assert sample_prompts(Counting(None), [], 4) == []  # type: ignore[arg-type]


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.floats(-9, 0), st.floats(-2, 2)), min_size=1, max_size=8),
)
def test_a_datum_pays_every_sampled_token_by_itself(
    read: int, sampled: list[tuple[float, float]]
) -> None:
    tokens = list(range(read + len(sampled)))
    logprobs, advantages = (list(column) for column in zip(*sampled, strict=True))
    short = datum(tokens, logprobs, advantages)
    # A whole sequence as services describe it: nothing is known of the first token.
    whole = datum(tokens, [None, *[-1.0] * (read - 1), *logprobs], [0.0] * read + advantages)
    for made in (short, whole):
        parts = {name: tensor.to_numpy() for name, tensor in made.loss_fn_inputs.items()}
        assert set(parts) == {"target_tokens", "logprobs", "advantages"}
        assert made.model_input.to_ints() == tokens[:-1]
        assert parts["target_tokens"].tolist() == tokens[1:]
        paid = np.array([0.0] * (read - 1) + advantages, np.float32)
        assert parts["advantages"].tolist() == paid.tolist()
        known = np.array([0.0] * (read - 1) + logprobs, np.float32)
        assert parts["logprobs"][paid != 0.0].tolist() == known[paid != 0.0].tolist()


@pytest.mark.parametrize(
    ("tokens", "logprobs", "advantages"),
    [
        ([1], [-1.0], [0.0]),
        ([1, 2], [-1.0], [1.0, 1.0]),
        ([1, 2], [-1.0] * 3, [1.0] * 3),
        ([1, 2], [None], [1.0]),
        ([1, 2], [-1.0], [float("inf")]),
    ],
)
def test_what_is_no_datum_is_refused(tokens: Any, logprobs: Any, advantages: Any) -> None:
    with pytest.raises(ValueError, match=r"a datum needs|a token with an advantage"):
        datum(tokens, logprobs, advantages)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_log_goes_on_after_half_a_line(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "mine")
    run.log(mean_reward=np.float32(0.5), note="text", lost=float("nan"))
    run.log(mean_reward=0.75)
    run.log(step=10, mean_reward=1)
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 1')
    RunFolder(run.folder).log(mean_reward=2)
    *whole, half, last = (run.folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in [*whole, last]] == [0, 1, 10, 11]
    assert json.loads(whole[0]) == {"step": 0, "mean_reward": 0.5, "note": "text", "lost": None}
    assert half == '{"step": 1'
    assert run.steps() == []  # of a loop of one's own nothing else is known


def test_a_log_goes_to_weights_and_biases_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the client of others, which writes down what it is called with."""
    (tmp_path / "wandb.py").write_text(
        "calls = []\n"
        "class Run:\n"
        "    def log(self, line, step): calls.append((line, step))\n"
        "def init(**said):\n"
        "    calls.append(said)\n"
        "    return Run()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    run = RunFolder(tmp_path / "run", wandb="mine")
    run.log(mean_reward=0.5)
    run.log(mean_reward=0.75)
    calls = sys.modules["wandb"].calls
    opened = {"project": "mine", "name": "run", "dir": str((tmp_path / "run").resolve())}
    assert calls == [opened, *((line, line["step"]) for line in lines(tmp_path / "run"))]
    monkeypatch.delitem(sys.modules, "wandb")


@pytest.mark.nightly
@pytest.mark.parametrize("script", sorted(path.name for path in SCRIPTS.glob("*.py")))
def test_a_script_of_the_page_runs(
    script: str,
    starting_service: LocalService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TINKER_BASE_URL", starting_service.base_url)
    monkeypatch.setenv("TINKER_API_KEY", starting_service.api_key)
    few = {
        "many_prompts.py": ["--prompts", "6", "--replies", "2"],
        "two_models.py": ["--steps", "2", "--prompts", "2", "--replies", "2"],
        "log_a_run.py": ["--episodes", "2"],
    }[script]
    folder = [] if script == "many_prompts.py" else ["--run", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [script, *few, *folder])
    runpy.run_path(str(SCRIPTS / script), run_name="__main__")
    if folder:
        assert [row["step"] for row in lines(tmp_path)] == [0, 1]
        assert all(np.isfinite(row["mean_reward"]) for row in lines(tmp_path))
    else:
        assert "12 replies to 6 prompts" in capsys.readouterr().out
