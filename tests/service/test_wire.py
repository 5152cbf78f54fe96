"""Messages are checked before anything of the size they state is allocated."""

from __future__ import annotations

import numpy as np
import pytest
from tinker.proto import tinker_public_pb2 as pb

from tokengym.agents.service.errors import BadRequestError
from tokengym.agents.service.http.wire import read_loss_request


def _message(shape: tuple[int, ...]) -> pb.ForwardBackwardRequest:
    message = pb.ForwardBackwardRequest(model_id="x", loss_fn="cross_entropy")
    tensor = message.data.add().loss_fn_inputs["target_tokens"]
    tensor.dtype = pb.DTYPE_INT64
    tensor.shape.extend(shape)
    tensor.sparse_csr.crow_indices = np.array([0, 0], np.int64).tobytes()
    return message


@pytest.mark.parametrize("shape", [(1, 60_000_000), (2**40, 2**40), (1, -5), (-(2**60), 1)])
def test_a_few_bytes_do_not_ask_for_many_values(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadRequestError, match=str(shape[-1])):
        read_loss_request(_message(shape))


def test_a_sparse_tensor_within_bounds_is_read() -> None:
    request = read_loss_request(_message((1, 5)))
    assert request.data[0].inputs["target_tokens"].tolist() == [[0] * 5]
