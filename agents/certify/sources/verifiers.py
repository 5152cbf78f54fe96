"""Environments of verifiers before 0.4, by id."""

from typing import Any

import verifiers as vf
from verifiers.types import ClientConfig

from tokengym.agents.certify.source import MANY_TURNS, Episode, Facts, Place, Source
from tokengym.agents.certify.sources import package
from tokengym.agents.certify.sources.chat_server import ChatServer


class Verifiers(Source):
    """An environment; a Task is a row of its training or evaluation data.

    Args:
        name: id, as `verifiers.load_environment` takes it.
        **options: arguments of the environment.
    """

    def __init__(self, name: str, **options: Any) -> None:
        self._env = vf.load_environment(name, **options)
        self._rows = {"train": self._env.get_dataset()}
        self._env.build_eval_dataset()
        if self._env.eval_dataset is not None:
            self._rows["test"] = self._env.get_eval_dataset()
        self._server = ChatServer()
        self._client = ClientConfig(api_base_url=self._server.url, api_key_var="UNSET")
        self.facts = Facts(
            package=package("verifiers"),
            splits=tuple(self._rows) if len(self._rows) > 1 else (),
            size=min(map(len, self._rows.values())),
            turns=1 if isinstance(self._env, vf.SingleTurnEnv) else MANY_TURNS,
        )

    def start(self, place: Place) -> Episode:
        """Let the environment begin a rollout, up to its first request for a reply."""
        row = {**self._rows[place.split or "train"][place.index], "example_id": place.index}
        # Where the data are reasoning-gym's, a row's answer is its place among them.
        data = getattr(self._env, "rg_dataset", None)
        answer = row.get("answer") if data is None else data[int(row["answer"])]["answer"]

        def run(model: str) -> Any:
            return self._env.run_rollout(row, self._client, model, {})

        prompt, reply = self._server.begin(run, lambda rollout: rollout["reward"])
        return Episode(prompt, reply, (answer,) if answer else ())
