"""Laws of the viewer's server: its own page alone, and nothing but the runs it was given."""

import http.client
import json
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.viewer.conftest import HOSTILE, rollout, serving, write_run
from tokengym.agents.rollouts import RolloutLog
from tokengym.agents.viewer import Viewer, index_page, open_runs, whole_page
from tokengym.agents.viewer.pages import STATIC
from tokengym.agents.viewer.table import groups_of
from tokengym.envs.core.errors import OptionError


def ask(
    viewer: Viewer, path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    host, port = viewer.server_address[:2]
    connection = http.client.HTTPConnection(str(host), int(port), timeout=20)
    sent = {"Host": f"127.0.0.1:{port}"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    connection.putrequest(method, path, skip_host=True)
    for name, value in sent.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {k.lower(): v for k, v in answer.getheaders()}, body


def test_it_listens_on_loopback_and_every_answer_has_its_policy(viewer: Viewer) -> None:
    assert viewer.server_address[0] == "127.0.0.1"
    for path in ("/", "/static/app.js", "/api/runs", "/api/run?run=first", "/nothing"):
        _, headers, _ = ask(viewer, path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_other_hosts_and_origins_are_refused(viewer: Viewer, headers: dict[str, str]) -> None:
    status, _, body = ask(viewer, "/api/run?run=first", **headers)
    assert status == 403
    assert b"forecast" not in body.lower()


def test_loopback_names_and_its_origin_are_let_in(viewer: Viewer) -> None:
    host = f"localhost:{viewer.server_address[1]}"
    status, _, body = ask(
        viewer, "/api/runs", Host=host, Origin=f"http://{host}", Sec_Fetch_Site="same-origin"
    )
    assert status == 200
    assert {run["name"] for run in json.loads(body)} == {"first", "second"}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_reading_is_answered(viewer: Viewer, method: str) -> None:
    assert ask(viewer, "/api/runs", method)[0] == 501


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static//etc/passwd",
        "/../../etc/passwd",
        "/settings.json",
        "/static/",
    ],
)
def test_no_file_but_the_pages_own_is_served(viewer: Viewer, path: str) -> None:
    assert ask(viewer, path)[0] == 404


@pytest.mark.parametrize(
    "query",
    [
        {"run": "../first", "segment": "train_000000", "row": "0"},
        {"run": "/etc", "segment": "train_000000", "row": "0"},
        {"run": "first", "segment": "../settings", "row": "0"},
        {"run": "first", "segment": "../../second/rollouts/train_000000", "row": "0"},
        {"run": "first", "segment": "/etc/passwd", "row": "0"},
        {"run": "first", "segment": "train_000000", "row": "-1"},
        {"run": "first", "segment": "train_000000", "row": "99999"},
        {"run": "first", "segment": "train_000000", "row": "٣"},
        {"run": "first", "segment": "train_000000"},
        {},
    ],
)
def test_asking_for_missing_parts_is_the_askers_error(
    viewer: Viewer, query: dict[str, str]
) -> None:
    for path in ("group", "picture"):
        status, _, body = ask(viewer, f"/api/{path}?{urlencode(query)}")
        assert status == 400
        assert set(json.loads(body)) == {"error"}


@pytest.mark.nightly
def test_links_out_of_a_folder_are_no_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "elsewhere", "forecast")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OptionError, match="holds no run"):
        open_runs([inside])


@pytest.mark.nightly
def test_an_episode_has_its_worlds_picture(tmp_path: Path) -> None:
    """Files of rollouts alone are enough."""
    RolloutLog(tmp_path / "day").append("played", [rollout("energy", "train", 0, 0, 0)])
    with serving(tmp_path / "day") as server:
        query = urlencode({"run": "day", "segment": "played", "row": "0"})
        status, headers, body = ask(server, f"/api/picture?{query}")
    assert (status, headers["content-type"]) == (200, "image/png")
    assert body.startswith(b"\x89PNG")


FOREIGN = [
    {"prompt": "2 + 2?", "reply": "4", "reward": 1, "group": "a", "split": "../test"},
    {"prompt": "2 + 2?", "reply": "5", "reward": 0, "group": "a", "split": "../test"},
    {"prompt": "2 + 3?", "reply": "5", "reward": "nan", "group": "b", "split": "train"},
]
VERIFIERS = [
    {
        "prompt": [{"role": "user", "content": f"{n} + 1?"}],
        "completion": "2",
        "reward": 0.5,
        "example_id": n,
    }
    for n in (1, 1, 2)
]


@pytest.mark.parametrize(
    ("name", "rows", "as_folder"),
    [
        ("log.jsonl", FOREIGN, False),
        ("results.jsonl", VERIFIERS, False),
        ("results.jsonl", VERIFIERS, True),
    ],
)
def test_other_peoples_rollouts_open_too(
    tmp_path: Path, name: str, rows: list[dict[str, object]], as_folder: bool
) -> None:
    path = tmp_path / "theirs" / name
    path.parent.mkdir()
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    before = sorted(tmp_path.rglob("*"))
    (view,) = open_runs([path.parent if as_folder else path]).values()
    assert sorted(tmp_path.rglob("*")) == before
    segments = view.tables()
    sizes = [len(rows) for one in segments for rows in groups_of(view.records(one)).values()]
    assert sorted(sizes) == [1, 2]
    said = [reply for table in segments.values() for reply in table["said"]]
    assert sorted(said) == sorted(str(row.get("reply", row.get("completion"))) for row in rows)
    whole_page({"theirs": view}, 10**6)


def test_what_holds_no_rollouts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"text": "hello"}\n')
    for path in (tmp_path / "notes.jsonl", tmp_path, tmp_path / "missing"):
        with pytest.raises(OptionError, match="holds no run and no rollouts"):
            open_runs([path])


def test_rows_tell_ties_and_the_dead(runs_folder: Path) -> None:
    first = open_runs([runs_folder / "first"])["first"]
    table = first.tables(["train_000001"])["train_000001"]
    for group, dead, tie in zip(table["group"], table["dead"], table["tie"], strict=True):
        assert dead == (group % 2 == 0)
        assert tie == (3 if dead else tie)
    words = HOSTILE[:20].upper()
    assert {name: rows for name, rows in first.search(words).items() if rows} == {
        "train_000002": [15]
    }


def test_torn_files_are_named_and_the_rest_shown(tmp_path: Path) -> None:
    run = write_run(tmp_path / "torn", "forecast")
    with run.rollouts.path("train_000001").open("a") as file:
        file.write('{"schema": 1, "kind"')
    run.rollouts.path("train_000002").write_text('{"schema": 99}\n')
    (view,) = open_runs([run.folder]).values()
    assert set(view.tables()) == {"evaluation_before", "train_000000", "train_000001"}
    torn, damaged = view.summary()["notes"]
    assert "torn" in torn
    assert "schema 99" in damaged


def test_pages_never_turn_text_into_markup(runs_folder: Path) -> None:
    for name, source in STATIC.items():
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in source, name
    page = whole_page(open_runs([runs_folder / "first"]), 10**7)
    assert "<script>window.hacked" not in page
    assert "http://" not in index_page()


def test_two_runs_of_one_name_have_two_names(tmp_path: Path, runs_folder: Path) -> None:
    write_run(tmp_path / "first", "forecast")
    names = open_runs([runs_folder / "first", tmp_path / "first"])
    assert len(names) == 2
    assert all(name.endswith("/first") for name in names)
