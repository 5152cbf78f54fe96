"""Kinds of fault are noticed wherever they are planted."""

from pathlib import Path

import pytest

from tests.certify.kinds import FAULTS, PLANT, SLOW
from tests.every import every
from tokengym.agents.certify.bench import CertifySettings
from tokengym.agents.certify.certificate import certify
from tokengym.agents.certify.finding import Status

pytestmark = pytest.mark.nightly

FEW = CertifySettings(tasks=8, strategies=5, replies=20, drawn=40)


@pytest.mark.parametrize("kind", FAULTS)
@every("form", PLANT)
def test_a_fault_is_noticed_in_every_form(kind: str, form: str, tmp_path: Path) -> None:
    if kind in SLOW and form != "function":
        return
    fault = FAULTS[kind]
    source = PLANT[form](fault, tmp_path)
    (found,) = certify(source, "faulty", FEW, only=[fault.check]).findings
    assert found.status is Status.FAILED, found
    assert found.example or fault.check in ("semantic.floor_gap", "fair.length")
