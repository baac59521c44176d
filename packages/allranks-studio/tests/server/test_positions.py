"""Where nodes are on the canvas."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import Client

from allranks_studio.server import moved_nodes, positions

NODES = st.lists(st.lists(st.integers(0, 11), max_size=3, unique=True), max_size=12)


@given(NODES)
def test_boxes_do_not_overlap_and_edges_lead_to_the_right(edges: list[list[int]]) -> None:
    """In any order, and also if there are cycles, whose last edge is left out."""
    needs = {str(at): [str(each) for each in sources] for at, sources in enumerate(edges)}
    found = positions.laid_out(needs, (100, 50))
    assert list(found) == list(needs)
    places = list(found.values())
    for at, (x, y) in enumerate(places):
        assert min(x, y) >= 0
        assert all(abs(x - left) >= 100 or abs(y - top) >= 50 for left, top in places[:at])
    is_acyclic = all(each > at for at, sources in enumerate(edges) for each in sources)
    for name, sources in needs.items():
        assert not is_acyclic or all(found[source][0] < found[name][0] for source in sources if source in found)


def test_moved_nodes_stay_where_they_are(studio: Client, root: Path) -> None:
    folder = studio.studio.folders[studio.folder]
    assert studio.post("/api/document/positions", path="a.py", positions={"train": [1.4, -2]}) == {}
    studio.post("/api/document/positions", path="b.py", positions={"train": [3, 4]})
    assert moved_nodes.saved(folder, "a.py") == {"train": (1, -2)}
    studio.post("/api/document/positions", path="a.py", positions={})
    assert moved_nodes.saved(folder, "a.py") == {}
    assert moved_nodes.saved(folder, "b.py") == {"train": (3, 4)}
    (root / moved_nodes.FILE).write_text('{"positions": {"b.py": 5}}')
    assert moved_nodes.saved(folder, "b.py") == {}


@pytest.mark.parametrize("value", [[1], [1, "2"], [1, 1e300], [True, 1], None])
def test_other_values_are_refused(studio: Client, root: Path, value: Any) -> None:
    answer = studio.send(
        "POST", "/api/document/positions", {"folder": studio.folder, "path": "a.py", "positions": {"a": value}}
    )
    assert answer.status == 400
    assert not (root / moved_nodes.FILE).exists()


def test_a_full_disk_is_one_message(studio: Client, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_file(path: Path, *_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(moved_nodes, "write_file", write_file)
    answer = studio.send("POST", "/api/document/positions", {"folder": studio.folder, "path": "a.py", "positions": {}})
    expected = {"message": f"{root / moved_nodes.FILE}: No space left on device", "fix": "free some space"}
    assert (answer.status, answer.json) == (507, expected)


def test_nodes_with_many_ports_do_not_overlap() -> None:
    value = {"kind": "output", "node": "source", "port": "data"}
    ports = [{"type": "integer", "value": value}, *({"type": "uri_folder", "value": None} for _ in range(6))]
    node = {"inputs": [], "outputs": [], "after": [], "graph": None}
    nodes = [{**node, "name": "source", "path": "source"}]
    nodes += [{**node, "inputs": ports, "name": name, "path": name} for name in ("one", "two")]
    found = positions.of_document({"nodes": nodes})
    assert abs(found["one"][1] - found["two"][1]) >= 46 + 20 * 7 + 24
