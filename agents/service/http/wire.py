"""Convert between the SDK's messages (protobuf and JSON) and the service's types."""

import math
from collections.abc import Sequence as Many
from itertools import groupby
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from scipy.sparse import csr_array
from tinker import types
from tinker.proto import tinker_public_pb2 as pb
from tinker.types._pydantic_types.tensor_data import TensorData

from tokengym.agents.service.engine.base_model import BaseModel
from tokengym.agents.service.engine.groups import Tokens, check_ids
from tokengym.agents.service.engine.losses import LOSSES
from tokengym.agents.service.engine.trainer import Datum, LossRequest, LossResult
from tokengym.agents.service.errors import BadRequestError, UnsupportedError
from tokengym.agents.service.generation.jobs import SampleRequest, SampleResult
from tokengym.agents.service.generation.token_sampling import TokenSampling

_DTYPES: dict[int, type[np.generic]] = {pb.DTYPE_FLOAT32: np.float32, pb.DTYPE_INT64: np.int64}
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
        BadRequestError: naming the value and the rule.
        UnsupportedError: for features that only the hosted service has.
    """
    if sent.prompt_alt_tokens_k:
        raise UnsupportedError("prompt_alt_tokens_k is not supported by the local service")
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
        sampling=TokenSampling(
            seed=params.seed,
            temperature=float(params.temperature),
            top_k=params.top_k,
            top_p=float(params.top_p),
        ),
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
        _write_targets(message.target_prompt_logprobs, sent.target_prompt_logprobs, scores.targets)
    return message.SerializeToString()


def _targets(tensor: TensorData | None, length: int, vocabulary: int) -> NDArray[np.int64] | None:
    """Read the ids to score at each place of a prompt, -1 for none, [length - 1, K]."""
    if tensor is None:
        return None
    what = "target_prompt_logprobs"
    shape = tuple(tensor.shape or ())
    if tensor.dtype != "int64" or len(shape) != 2 or shape[0] != length - 1:
        raise BadRequestError(
            f"{what} must be int64 of shape [{length - 1}, K], got {tensor.dtype} of shape {shape}"
        )
    if not 1 <= shape[1] <= MAX_TOPK:
        raise BadRequestError(f"{what} must have 1 to {MAX_TOPK} ids a place, got {shape[1]}")
    data = np.array([min(max(int(token), -2), 2**31) for token in tensor.data], np.int64)
    if len(data) and (data.min() < -1 or data.max() >= vocabulary):
        raise BadRequestError(
            f"{what} must be token ids below {vocabulary}, or -1, got {min(tensor.data)} to "
            f"{max(tensor.data)}"
        )
    if tensor.sparse_crow_indices is None:
        if len(data) != math.prod(shape):
            raise BadRequestError(f"{what} must have {math.prod(shape)} values, got {len(data)}")
        return data.reshape(shape)
    dense = np.full(shape, -1, np.int64)
    dense[_cells(tensor, data, shape)] = data
    return dense


def _cells(
    tensor: TensorData, values: NDArray[Any], shape: tuple[int, ...]
) -> tuple[NDArray[np.integer[Any]], ...]:
    """Return the rows and columns of the values of a sparse tensor."""
    columns, ends = tensor.sparse_col_indices, tensor.sparse_crow_indices
    return _csr(values, columns, ends, shape, "target_prompt_logprobs").tocoo().coords


def _write_targets(message: pb.Tensor, asked: TensorData, values: NDArray[np.float32]) -> None:
    """Encode the log-probabilities of the ids asked about, in the layout of the request."""
    message.dtype = pb.DTYPE_FLOAT32
    message.shape.extend(values.shape)
    if asked.sparse_crow_indices is None:
        message.dense = values.astype(np.float32).tobytes()
        return
    cells = _cells(asked, np.array(asked.data), values.shape)
    message.sparse_csr.values = values[cells].astype(np.float32).tobytes()
    message.sparse_csr.crow_indices = np.array(asked.sparse_crow_indices, np.int64).tobytes()
    message.sparse_csr.col_indices = np.array(asked.sparse_col_indices, np.int64).tobytes()


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
            raise UnsupportedError(
                f"prompt chunks must be encoded_text on the local service, got {chunk.type}"
            )
        parts.extend(chunk.tokens)
    # An id too large for int32 must meet the rule about ids.
    return np.array([min(max(token, -1), 2**31 - 1) for token in parts], np.int32)


def _proto_tokens(datum: pb.Datum, index: int) -> Tokens:
    parts: list[NDArray[np.int32]] = []
    for chunk in datum.model_input:
        if chunk.WhichOneof("chunk") != "encoded_text":
            raise UnsupportedError(
                f"datum {index}: model_input chunks must be encoded_text on the local service, "
                f"got {chunk.WhichOneof('chunk')}"
            )
        parts.append(_frombuffer(chunk.encoded_text.tokens, np.int32, f"datum {index}: tokens"))
    return np.concatenate(parts) if parts else np.empty(0, np.int32)


def _proto_array(tensor: pb.Tensor, what: str) -> NDArray[Any]:
    if tensor.dtype not in _DTYPES:
        raise BadRequestError(f"{what} must be float32 or int64, got dtype {tensor.dtype}")
    kind = _DTYPES[tensor.dtype]
    shape = tuple(tensor.shape)
    if any(size < 0 for size in shape):
        raise BadRequestError(f"{what} must have a shape of sizes of at least 0, got {shape}")
    if tensor.WhichOneof("encoding") == "sparse_csr":
        return _from_csr(tensor.sparse_csr, kind, shape, what)
    array = _frombuffer(tensor.dense, kind, what)
    if shape and math.prod(shape) != array.size:
        raise BadRequestError(f"{what} must have {shape} values, got {array.size}")
    return array.reshape(shape) if shape else array


def _from_csr(
    csr: pb.SparseCsr, kind: type[np.generic], shape: tuple[int, ...], what: str
) -> NDArray[Any]:
    # The shape alone would have any amount of memory allocated.
    if math.prod(shape) > MAX_SPARSE:
        raise BadRequestError(f"{what} must have at most {MAX_SPARSE} places, its shape is {shape}")
    values = _frombuffer(csr.values, kind, what)
    ends = _frombuffer(csr.crow_indices, np.int64, what)
    columns = _frombuffer(csr.col_indices, np.int64, what)
    return np.asarray(_csr(values, columns, ends, shape, what).toarray())


def _csr(
    values: NDArray[Any], columns: Any, ends: Any, shape: tuple[int, ...], what: str
) -> csr_array:
    """Return a sparse matrix after checking it."""
    try:
        rows, width = shape
        places = (np.array(columns, np.int64), np.array(ends, np.int64))
        matrix = csr_array((values, *places), shape=(rows, width))
        matrix.check_format()
    except (ValueError, TypeError, OverflowError) as error:
        raise BadRequestError(
            f"{what} must be a sound CSR matrix of shape {shape}: {error}"
        ) from error
    return matrix


def _frombuffer(data: bytes, kind: type[np.generic], what: str) -> NDArray[Any]:
    if len(data) % np.dtype(kind).itemsize:
        raise BadRequestError(f"{what} must be whole {kind.__name__} values, got {len(data)} bytes")
    return np.frombuffer(data, kind)


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
