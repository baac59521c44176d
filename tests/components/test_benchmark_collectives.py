"""benchmark_collectives: the formulas, the check of results, the verdict, and the benchmark between real processes."""

import dataclasses
import json
import re
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from component_processes import COMPONENTS, Ended, run_script

from allranks.errors import InputError
from allranks.hardware.sizes import find

Importer = Callable[[str, str], Any]

NAMES = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "send_receive"]


@pytest.mark.parametrize(
    ("collective", "factor"),
    [("all_reduce", 1.75), ("all_gather", 0.875), ("reduce_scatter", 0.875), ("broadcast", 1), ("send_receive", 1)],
)
def test_bandwidths_are_those_of_nccl_tests(code: Importer, collective: str, factor: float) -> None:
    collectives = code("benchmark_collectives", "collectives").COLLECTIVES
    assert collectives[collective].factor(8) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("range_", "sizes"),
    [((8, 64, 2), [8, 16, 32, 64]), ((1024, 5000, 4), [1024, 4096]), ((100, 100, 10), [100]), ((3, 100, 10), [3, 30])],
)
def test_sizes(code: Importer, range_: tuple[int, int, int], sizes: list[int]) -> None:
    assert code("benchmark_collectives", "measuring").sizes(*range_) == sizes


@pytest.mark.parametrize(("size", "ranks", "count"), [(1024, 4, 256), (1, 4, 4), (1000, 3, 249), (1 << 20, 6, 262140)])
def test_every_rank_has_a_whole_part(code: Importer, size: int, ranks: int, count: int) -> None:
    assert code("benchmark_collectives", "collectives").element_count(size, torch.float32, ranks) == count


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("ranks", [2, 3, 300])
def test_the_sums_that_are_checked_are_exact(code: Importer, ranks: int, dtype: torch.dtype) -> None:
    """In every dtype and whatever the order: here the ranks' parts are added one by one."""
    collectives = code("benchmark_collectives", "collectives")
    places = [collectives.Place(rank, ranks, torch.device("cpu"), dtype) for rank in range(ranks)]
    total = torch.zeros(2000, dtype=dtype)
    for place in places:
        total += collectives._summand(2000, place)
    assert torch.equal(total, collectives._values(2000, places[0]))


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_result_is_found(code: Importer, name: str) -> None:
    """By a call that does nothing, and by one element that is another one's."""
    collectives = code("benchmark_collectives", "collectives")
    made = collectives.COLLECTIVES[name].make(90, collectives.Place(1, 3, torch.device("cpu"), torch.float32))
    made.prepare()
    buffer, values = made.result
    assert made.wrong() > 0.8 * len(buffer)
    buffer.copy_(values())
    assert made.wrong() == 0
    buffer[11] += 1
    assert made.wrong() == 1


@pytest.mark.parametrize(
    ("changes", "gb_s", "said"),
    [
        ({}, 228, "1 instance of Standard_ND96asr_v4"),
        ({"given": 100.0}, 100, "expected_gb_s"),
        ({"size": None}, None, "neither size nor"),
        ({"size": None, "given": 2.0, "backend": "gloo"}, 2, "expected_gb_s"),
        ({"backend": "gloo"}, None, "is for NCCL, and these ranks talk over gloo"),
        ({"ranks_each": 4}, None, "is for 8 ranks an instance, and there are 4"),
        ({"instances": 3}, None, "no figure is known for 3 instances"),
        ({"instances": 2}, 189, "2 instances of Standard_ND96asr_v4"),
    ],
)
def test_what_is_expected(code: Importer, changes: dict[str, Any], gb_s: float | None, said: str) -> None:
    given = {"size": "ND96asr_v4", "given": None, "instances": 1, "ranks_each": 8, "backend": "nccl"} | changes
    size, own = given.pop("size"), given.pop("given")
    known = size and dataclasses.replace(find(size), all_reduce_gb_s=228.0, all_reduce_two_instances_gb_s=189.0)
    found = code("benchmark_collectives", "verdict").expected(known, own, **given)
    assert found.gb_s == gb_s
    assert re.search(said, found.reason)


@pytest.mark.parametrize(
    ("measured", "expected", "fail_below", "word", "failed"),
    [
        (230.0, 228.0, None, "good", False),
        (218.0, 228.0, 0.9, "good", False),
        (200.0, 228.0, None, "slow", False),
        (200.0, 228.0, 0.8, "slow", False),
        (100.0, 228.0, 0.8, "slow", True),
        (100.0, None, 0.8, "no expectation", False),
        (None, 228.0, 0.8, "no expectation", False),
    ],
)
def test_the_verdict(
    code: Importer, measured: float | None, expected: float | None, fail_below: float | None, word: str, failed: bool
) -> None:
    verdict = code("benchmark_collectives", "verdict")
    found = verdict.judge(measured, verdict.Expected(expected, "as somebody says"), fail_below)
    assert (found.word, found.failed) == (word, failed)
    assert found.text.endswith(".")


@pytest.mark.parametrize(("size", "text"), [(1, "1 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (8 << 30, "8 GiB")])
def test_bytes_are_told_in_their_unit(code: Importer, size: int, text: str) -> None:
    assert code("benchmark_collectives", "page").bytes_text(size) == text


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Ended, Path]]:
    """Runs the benchmark, small, on so many ranks."""

    def run(*arguments: str, ranks: int) -> tuple[Ended, Path]:
        folder = tmp_path_factory.mktemp("benchmark")
        given = ["--min_bytes", "64", "--max_bytes", "8192", "--factor", "8", "--iterations", "2", "--warm_up", "1"]
        given += [*arguments, "--bandwidth", str(folder / "bandwidth")]
        script = COMPONENTS / "diagnosis/benchmark_collectives" / "benchmark.py"
        ended = run_script("benchmark_collectives", *given, script=script, folder=folder, ranks=ranks)
        return ended, folder

    return run


@pytest.mark.slow
def test_three_ranks_measure_every_collective(benchmark: Any) -> None:
    ended, folder = benchmark(ranks=3)
    assert ended.codes == [0, 0, 0], ended.errors
    found = json.loads((folder / "bandwidth/bandwidth.json").read_text())
    assert (found["world_size"], found["backend"], found["dtype"]) == (3, "gloo", "float32")
    assert [machine["gpus"] for machine in found["machines"]] == [0]
    rows, factors = found["rows"], {"all_reduce": 4 / 3, "all_gather": 2 / 3, "reduce_scatter": 2 / 3}
    assert [(row["collective"], row["size"]) for row in rows] == [
        (name, size) for size in (60, 504, 4092) for name in NAMES
    ]
    for row in rows:
        assert row["wrong"] == 0
        assert 0 < row["mean_seconds"] <= row["seconds"]
        assert row["algorithm_gb_s"] == pytest.approx(row["size"] / row["seconds"] / 1e9)
        assert row["bus_gb_s"] == pytest.approx(row["algorithm_gb_s"] * factors.get(row["collective"], 1))
    assert found["skipped"] == []
    best = max(row["bus_gb_s"] for row in rows if row["collective"] == "all_reduce")
    assert found["verdict"]["measured_gb_s"] == best
    assert found["verdict"]["word"] == "no expectation"
    assert found["verdict"]["text"] in ended.output

    page = (folder / "bandwidth/index.html").read_text()
    assert not re.search(r'https?:|src=|href="[^#]|@import|url\([^#]|\bnan\b|\binf\b', page)
    drawn = [ElementTree.fromstring(picture) for picture in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    points = [sum("fill: var(--s" in use.get("style", "") for use in picture.iter("use")) for picture in drawn]
    assert points == [15, 15]
    alone = ElementTree.parse(folder / "bandwidth/bandwidth.svg").getroot()
    assert {text.text for text in alone.iter("{http://www.w3.org/2000/svg}text")} >= {"all-reduce", "point to point"}


@pytest.mark.slow
def test_too_slow_fails_the_step_and_leaves_the_figures(benchmark: Any) -> None:
    slow = ["--expected_gb_s", "1000000", "--fail_below", "0.5", "--collectives", "all_reduce,broadcast"]
    ended, folder = benchmark(*slow, "--dtype", "bfloat16", ranks=2)
    assert ended.codes == [1, 1]
    found = json.loads((folder / "bandwidth/bandwidth.json").read_text())
    assert found["verdict"]["word"] == "slow"
    assert found["verdict"]["failed"]
    assert {row["collective"] for row in found["rows"]} == {"all_reduce", "broadcast"}
    assert "The step fails below 50%." in ended.errors[0]


@pytest.mark.parametrize(
    ("changes", "ranks", "said"),
    [
        ({}, 1, "one rank"),
        ({"collectives": "all_reduce,gossip"}, 2, "no collective 'gossip'"),
        ({"max_bytes": 8}, 2, "8 bytes at most, and 64 at least"),
        ({"size": "ND97asr_v4"}, 2, "no size 'ND97asr_v4' is known"),
    ],
)
def test_wrong_input_ends_with_a_message(code: Importer, changes: dict[str, Any], ranks: int, said: str) -> None:
    given = {"collectives": "all_reduce", "min_bytes": 64, "max_bytes": 128, "factor": 2, "size": None} | changes
    here = SimpleNamespace(world_size=ranks, device=torch.device("cpu"))
    with pytest.raises(InputError, match=said):
        code("benchmark_collectives", "benchmark").benchmark(here, Namespace(**given))
