import numpy as np
import pytest

from tests.training.test_toy_model import in_session, untrained
from tokengym.agents.training.config import preset
from tokengym.envs.registry import make_world

pytestmark = pytest.mark.filterwarnings("ignore")


def test_x(served):
    out = []
    w = make_world("forecast", "easy")
    for T in (0.0, 0.5, 1.0):
        cfg = preset("forecast", evaluation_tasks=500, temperature=T, **served)
        f = in_session(cfg, untrained)
        lab, st = map(np.array, zip(*f.stated))
        out += [
            T,
            len(st),
            "mean stated",
            st.mean(),
            "sd",
            st.std(),
            "corr w outcome",
            np.corrcoef(lab, st)[0, 1],
            "expected",
            f.expected,
            "outcome",
            f.returns,
            f.figures["malformed"],
            len(np.unique(st)),
        ]
        p = [w.task("test", i).answer["p_bayes"][1] for i in range(500)]
        if len(st) == 500:
            out.append(np.corrcoef(p, st)[0, 1])
        open("/tmp/work/w_toy.out", "w").write("\n".join(map(str, out)))
