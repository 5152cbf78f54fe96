"""A run's weights in formats that others load: a PEFT adapter, or a merged model."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tokengym.agents.service.engine.adapters import LoraSpec, LoraWeights
from tokengym.agents.service.engine.checkpoints import CheckpointPath, CheckpointStore
from tokengym.agents.training.connection import ServiceTarget
from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.core.errors import OptionError

_HEAD = "lm_head"


@dataclass(frozen=True)
class TrainedAdapter:
    """The weights that a run trained: matrices by module.

    Attributes:
        weights: the adapter.
        model: directory of the model it belongs to.
    """

    weights: LoraWeights
    model: Path

    @classmethod
    def of_run(cls, run: RunFolder) -> Self:
        """Read the last weights that a run saved on its own service.

        Raises:
            OptionError: if there are none here.
        """
        config, path = run.config, run.saved_weights()
        if config.base_url is not None:
            raise OptionError(
                f"the weights of {run.folder} are at the service {config.base_url}; only those of "
                "a run's own local service can be exported"
            )
        with tempfile.TemporaryDirectory() as folder:
            path = run.copy_weights(path, Path(folder))
            tensors, info = CheckpointStore(Path(folder)).load(CheckpointPath.parse(path))
        target = ServiceTarget.resolve(config)
        return cls(LoraWeights.from_tensors(tensors, LoraSpec(**info.lora)), Path(target.model))

    def write_peft(self, folder: Path) -> None:
        """Write it as `peft.PeftModel.from_pretrained` and vLLM read adapters."""
        folder.mkdir(parents=True)
        for name, content in self.weights.peft_files(str(self.model)).items():
            (folder / name).write_bytes(content)
        AutoTokenizer.from_pretrained(self.model).save_pretrained(folder)

    def write_merged(self, folder: Path) -> None:
        """Write the model with the adapter added to its weights.

        A head that shares its matrix with the embedding gets one of its own, since only the head
        was trained.
        """
        model: Any = AutoModelForCausalLM.from_pretrained(self.model, dtype="auto")
        modules = dict(model.named_modules())
        adapters = self.weights.adapters()
        if _HEAD in adapters and model.config.tie_word_embeddings:
            head = modules[_HEAD]
            head.weight = torch.nn.Parameter(head.weight.detach().clone(), requires_grad=False)
            model.config.tie_word_embeddings = False
        for name, (a, b, scaling) in adapters.items():
            weight = modules[name].weight
            update = (b.float() @ a.float()) * scaling
            # Some models keep the matrix as [in, out].
            update = update if update.shape == weight.shape else update.T
            with torch.no_grad():
                weight.copy_((weight.float() + update).to(weight.dtype))
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(self.model).save_pretrained(folder)
