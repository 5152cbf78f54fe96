"""The decoder for architectures that cannot share prompts: transformers' own cache.

Rows of equal length run together, so no padding and no mask is needed, whatever the attention.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from tokengym.agents.service.engine.packing import Tokens


@dataclass
class _Cohort:
    """Rows of equal length: their indices in the batch and their cache."""

    rows: NDArray[np.int64]
    length: int
    cache: Any


class PlainDecoder:
    """A `Decoder` over `transformers.DynamicCache`.

    Args:
        model: any causal language model.
        apart: whether each row runs by itself: then others do not change a bit of it, as products
            of matrices have the shapes of the row alone.
    """

    def __init__(self, model: Any, *, apart: bool = False) -> None:
        self._model = model
        self._apart = apart
        self._device = next(model.parameters()).device
        self._cohorts: list[_Cohort] = []
        self._rows = 0

    def admit(self, prompts: Sequence[Tokens]) -> torch.Tensor:
        """See `Decoder.admit`; equal prompts are computed once."""
        logits: list[torch.Tensor | None] = [None] * len(prompts)
        alike: dict[int, list[int]] = defaultdict(list)
        for row, prompt in enumerate(prompts):
            alike[row if self._apart else len(prompt)].append(row)
        for rows in alike.values():
            length = len(prompts[rows[0]])
            distinct = {prompts[row].tobytes(): prompts[row] for row in rows}
            place = {key: index for index, key in enumerate(distinct)}
            ids = torch.from_numpy(np.stack(list(distinct.values())).astype(np.int64))
            cache = DynamicCache(config=self._model.config)
            output = self._run(ids, cache, 0)
            index = torch.tensor([place[prompts[row].tobytes()] for row in rows])
            cache.batch_select_indices(index.to(self._device))
            self._cohorts.append(_Cohort(np.array(rows) + self._rows, length, cache))
            for row, at in zip(rows, index.tolist(), strict=True):
                logits[row] = output[at]
        self._rows += len(prompts)
        return torch.stack([row for row in logits if row is not None])

    def step(self, tokens: NDArray[np.int64]) -> torch.Tensor:
        """See `Decoder.step`."""
        parts: list[torch.Tensor] = []
        places: list[NDArray[np.int64]] = []
        for cohort in self._cohorts:
            ids = torch.from_numpy(tokens[cohort.rows])[:, None]
            parts.append(self._run(ids, cohort.cache, cohort.length))
            places.append(cohort.rows)
            cohort.length += 1
        back = np.argsort(np.concatenate(places))
        return torch.cat(parts)[torch.from_numpy(back).to(self._device)]

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder.keep`."""
        new_place = {row: place for place, row in enumerate(rows)}
        left: list[_Cohort] = []
        for cohort in self._cohorts:
            stay = [i for i, row in enumerate(cohort.rows.tolist()) if row in new_place]
            if not stay:
                continue
            if len(stay) < len(cohort.rows):
                cohort.cache.batch_select_indices(torch.tensor(stay, device=self._device))
            places = np.array([new_place[int(cohort.rows[i])] for i in stay])
            left.append(_Cohort(places, cohort.length, cohort.cache))
        self._cohorts = left
        self._rows = len(rows)

    def remember(self, row: int, tokens: Tokens) -> None:
        """Do nothing: this cache cannot be continued in another batch."""

    def _run(self, ids: torch.Tensor, cache: Any, past: int) -> torch.Tensor:
        length = ids.shape[1]
        at = torch.arange(past, past + length, device=self._device)[None].expand(len(ids), -1)
        with torch.inference_mode():
            output = self._model(
                input_ids=ids.to(self._device),
                position_ids=at,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
        logits: torch.Tensor = output.logits[:, -1].float()
        return logits
