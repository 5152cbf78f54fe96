"""Convert between the SDK's messages (protobuf and JSON) and the service's types."""

import math
from collections.abc import Iterator
from collections.abc import Sequence as Many
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from tinker import types
from tinker.proto import tinker_public_pb2 as pb
from tinker.proto.request_conv import _tensor_data_to_proto as write_tensor
from tinker.proto.response_conv import _tensor_data_from_proto as read_tensor
from tinker.types._pydantic_types.tensor_data import TensorData

from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.engine.forward import Tokens, check_ids
from tokengym.agents.service.engine.losses import LOSSES
from tokengym.agents.service.engine.trainer import Datum, LossRequest, LossResult
from tokengym.agents.service.errors import BadRequestError
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult

MAX_SAMPLES = 1024
MAX_TOPK = 1024
# Places of one sparse tensor: more than the targets of a long sequence have.
MAX_SPARSE = 1 << 22
# Below it the logits of a common model, divided by it, are infinite.
MIN_TEMPERATURE = 1e-5


def read_loss_message(body: bytes) -> Any:
    """Decode a forward_backward body; returns its `ForwardBackwardRequest`.

    Raises:
        BadRequestError: if the body is not such a message, or names no training run.
    """
    message = pb.ForwardBackwardRequest()
    try:
        message.ParseFromString(body)
    except DecodeError as error:
        raise BadRequestError(
            f"body must be a ForwardBackwardRequest message, got {len(body)} other bytes"
        ) from error
    if not message.model_id:
        raise BadRequestError("a ForwardBackwardRequest needs a model_id, got none")
    return message


def read_loss_request(message: Any) -> LossRequest:
    """Return what a `ForwardBackwardRequest` asks for.

    Raises:
        BadRequestError: if its data are no such request.
    """
    config: dict[str, float | str] = dict(message.loss_fn_config)
    for key, value in message.loss_fn_config_v2.items():
        config[key] = value.text if value.WhichOneof("value") == "text" else value.number
    loss = LOSSES.get(message.loss_fn)  # an unknown one is refused when its turn comes
    for index, datum in enumerate(message.data):
        # The hosted service looks up by it what it noted while it sampled.
        if loss and loss.needs_provenance and not datum.loss_fn_input_spans:
            raise BadRequestError(
                f"datum {index}: {loss.name} needs the provenance of its tokens, as "
                "Datum.with_provenance adds it"
            )
    data = [
        Datum(
            tokens=_proto_tokens(datum, index),
            inputs={
                name: _proto_array(tensor, f"datum {index}: {name}")
                for name, tensor in datum.loss_fn_inputs.items()
            },
        )
        for index, datum in enumerate(message.data)
    ]
    return LossRequest(data, message.loss_fn, config, message.forward_only)


def loss_response(result: LossResult) -> bytes:
    """Encode log-probabilities, losses and metrics."""
    message = pb.ForwardBackwardOutput(loss_fn_output_type="ArrayRecord")
    for name, value in result.metrics.items():
        message.metrics[name] = value
    # A record is rectangular: data with one target a token and with k lie in different ones.
    data = zip(result.logprobs, result.losses, strict=True)
    for trailing, members in groupby(data, key=lambda datum: datum[0].shape[1:]):
        logprobs, losses = zip(*members, strict=True)
        record = message.loss_fn_outputs.add(num_datums=len(logprobs))
        record.fields["logprobs"].CopyFrom(_batched(logprobs, trailing))
        record.fields["elementwise_loss"].CopyFrom(_batched(losses, trailing))
    return message.SerializeToString()


def sample_request(sent: types.SampleRequest, weights: str, base_model: BaseModel) -> SampleRequest:
    """Convert a sampling request after checking it against the model.

    Raises:
        BadRequestError: naming the value and the rule, or a feature that only the hosted service
            has.
    """
    if sent.prompt_alt_tokens_k:
        raise BadRequestError("prompt_alt_tokens_k is not supported by the local service")
    params = sent.sampling_params
    prompt = _json_tokens(sent.prompt)
    if not 1 <= len(prompt) < base_model.context:
        raise BadRequestError(
            f"prompt must have 1 to {base_model.context - 1} tokens, got {len(prompt)}"
        )
    check_ids("prompt", prompt, base_model.vocabulary)
    room = base_model.context - len(prompt)
    max_tokens = room if params.max_tokens is None else params.max_tokens
    if not 1 <= max_tokens <= room:
        raise BadRequestError(
            f"max_tokens must be 1 to {room} after a prompt of {len(prompt)} tokens (the context "
            f"is {base_model.context}), got {max_tokens}"
        )
    if not 1 <= sent.num_samples <= MAX_SAMPLES:
        raise BadRequestError(f"num_samples must be 1 to {MAX_SAMPLES}, got {sent.num_samples}")
    for name in ("topk_prompt_logprobs", "topk_sample_logprobs"):
        limit = min(MAX_TOPK, base_model.vocabulary)
        if not 0 <= getattr(sent, name) <= limit:
            raise BadRequestError(f"{name} must be 0 to {limit}, got {getattr(sent, name)}")
    warm = np.isfinite(params.temperature) and params.temperature >= MIN_TEMPERATURE
    if not (warm or params.temperature == 0):
        raise BadRequestError(
            f"temperature must be 0 or at least {MIN_TEMPERATURE}, got {params.temperature}"
        )
    if not 0 < params.top_p <= 1:
        raise BadRequestError(f"top_p must be above 0 and at most 1, got {params.top_p}")
    stop_tokens, stop_strings = _stops(params.stop, base_model.eos)
    return SampleRequest(
        weights=weights,
        prompt=prompt,
        count=sent.num_samples,
        sampling=params,
        max_tokens=max_tokens,
        stop_tokens=stop_tokens,
        stop_strings=stop_strings,
        score=bool(sent.prompt_logprobs),
        topk_prompt=sent.topk_prompt_logprobs,
        topk_sample=sent.topk_sample_logprobs,
        targets=_targets(sent.target_prompt_logprobs, len(prompt), base_model.vocabulary),
    )


def sample_response(result: SampleResult, sent: types.SampleRequest) -> bytes:
    """Encode what was sampled for a request."""
    last = sent.prompt_logprobs_last_n
    message = pb.SampleResponse()
    for sequence in result.sequences:
        sampled = message.sequences.add(
            stop_reason=pb.STOP_REASON_STOP if sequence.stopped else pb.STOP_REASON_LENGTH,
            tokens=sequence.tokens.tobytes(),
            logprobs=sequence.logprobs.tobytes(),
        )
        if sequence.topk_ids:
            sampled.topk_sampled_logprobs.CopyFrom(
                _topk(np.stack(sequence.topk_ids), np.stack(sequence.topk_logprobs))
            )
            # Both forms of all of them are too much at once.
            sequence.topk_ids, sequence.topk_logprobs = [], []
    if (scores := result.scores) is None:
        return message.SerializeToString()
    skipped = 0 if last is None else len(scores.logprobs) - last
    if sent.prompt_logprobs:
        numbers = scores.logprobs.copy()
        numbers[:skipped] = np.nan
        message.prompt_logprobs = numbers.tobytes()
    if scores.topk is not None:
        best, values = scores.topk[0].copy(), scores.topk[1].copy()
        best[:skipped], values[:skipped] = 0, -99999.0
        message.topk_prompt_logprobs.CopyFrom(_topk(best, values))
    if scores.targets is not None and sent.target_prompt_logprobs is not None:
        told = _target_response(sent.target_prompt_logprobs, scores.targets)
        message.target_prompt_logprobs.CopyFrom(told)
    return message.SerializeToString()


def _targets(tensor: TensorData | None, length: int, vocabulary: int) -> NDArray[np.int64] | None:
    """Read the ids to score at each place of a prompt, -1 for none, [length - 1, K]."""
    if tensor is None:
        return None
    what, shape = "target_prompt_logprobs", tuple(tensor.shape or ())
    if tensor.dtype != "int64" or shape[:1] != (length - 1,) or not 1 <= shape[-1] <= MAX_TOPK:
        raise BadRequestError(
            f"{what} must be int64 of shape [{length - 1}, K], K from 1 to {MAX_TOPK}, got "
            f"{tensor.dtype} of shape {shape}"
        )
    with _sound(what):
        ids: NDArray[np.int64] = tensor.to_numpy(pad_value=-1)
    if ids.ndim != 2 or ids.min() < -1 or ids.max() >= vocabulary:
        raise BadRequestError(
            f"{what} must be token ids below {vocabulary}, or -1, got {ids.min()} to {ids.max()}"
        )
    return ids


def _target_response(asked: TensorData, values: NDArray[np.float32]) -> pb.Tensor:
    """Encode the log-probabilities [n, K] of the ids asked about, in the layout of the request."""
    data, ends, columns = values, asked.sparse_crow_indices, asked.sparse_col_indices
    if ends is not None:
        data = values[np.repeat(np.arange(len(values)), np.diff(ends)), np.array(columns)]
    shape = list(values.shape)
    return write_tensor(types.TensorData(data.ravel(), "float32", shape, ends, columns))


def _stops(stop: Any, eos: frozenset[int]) -> tuple[frozenset[int], tuple[str, ...]]:
    if stop is None:
        return eos, ()
    stops = [stop] if isinstance(stop, str) else list(stop)
    if "" in stops:
        raise BadRequestError("stop strings must not be empty")
    ids = frozenset(item for item in stops if isinstance(item, int))
    return ids, tuple(item for item in stops if isinstance(item, str))


def _json_tokens(prompt: types.ModelInput) -> Tokens:
    parts: list[int] = []
    for chunk in prompt.chunks:
        if chunk.type != "encoded_text":
            raise BadRequestError(
                f"prompt chunks must be encoded_text on the local service, got {chunk.type}"
            )
        parts.extend(chunk.tokens)
    # An id too large for int32 must meet the rule about ids.
    return np.array([min(max(token, -1), 2**31 - 1) for token in parts], np.int32)


def _proto_tokens(datum: pb.Datum, index: int) -> Tokens:
    parts: list[NDArray[np.int32]] = []
    for chunk in datum.model_input:
        if chunk.WhichOneof("chunk") != "encoded_text":
            raise BadRequestError(
                f"datum {index}: model_input chunks must be encoded_text on the local service, "
                f"got {chunk.WhichOneof('chunk')}"
            )
        with _sound(f"datum {index}: tokens"):
            parts.append(np.frombuffer(chunk.encoded_text.tokens, np.int32))
    return np.concatenate(parts) if parts else np.empty(0, np.int32)


def _proto_array(tensor: pb.Tensor, what: str) -> NDArray[Any]:
    shape = tuple(tensor.shape)
    # The shape alone would have any amount of memory allocated.
    if any(size < 0 for size in shape) or (
        tensor.HasField("sparse_csr") and math.prod(shape) > MAX_SPARSE
    ):
        raise BadRequestError(f"{what} must have at most {MAX_SPARSE} places, its shape is {shape}")
    with _sound(what):
        array: NDArray[Any] = read_tensor(tensor).to_numpy()
    return array


@contextmanager
def _sound(what: str) -> Iterator[None]:
    """Refuse a tensor that the SDK cannot read."""
    try:
        yield
    except Exception as error:  # of such a tensor anything may be raised
        raise BadRequestError(f"{what} must be a sound tensor: {error}") from error


def _batched(arrays: Many[NDArray[np.float32]], trailing: tuple[int, ...]) -> pb.BatchedTensor:
    sizes = np.array([0, *(array.nbytes for array in arrays)], np.int64)
    return pb.BatchedTensor(
        data=b"".join(array.tobytes() for array in arrays),
        offsets=np.cumsum(sizes).tobytes(),
        dtype=pb.DTYPE_FLOAT32,
        trailing_shape=trailing,
    )


def _topk(ids: NDArray[np.int32], logprobs: NDArray[np.float32]) -> pb.TopkLogprobs:
    return pb.TopkLogprobs(
        token_ids=ids.tobytes(),
        logprobs=logprobs.astype(np.float32).tobytes(),
        k=ids.shape[1],
        length=ids.shape[0],
    )
