"""compare_scaling: figures of histories, where more instances stop paying, the page, and files that are no history."""

import json
import re
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from component_processes import folder_of

from allranks.errors import InputError
from allranks.runtime import arguments
from allranks.runtime.spec_arguments import SPEC

Importer = Callable[[str, str], Any]

OWN = {"name": "a", "cores": 8, "gpus": 0}


def history(folder: Path, count: int, rate: float, batch: float = 100, **changes: Any) -> Path:
    """A history of so many instances with so many samples a second, whose first ten steps are ten times as slow."""
    points = [
        {"step": 10 * number, "seconds": batch / rate * (10 if number == 1 else 1), "samples": batch}
        for number in range(1, 6)
    ]
    content: dict[str, Any] = {
        "sample": "image",
        "world_size": 2 * count,
        "instance_count": count,
        "device": "cpu",
        "machines": [OWN | {"name": f"m{number}"} for number in range(count)],
        "points": points,
    }
    file = folder / f"history_{count}_{len(list(folder.iterdir()))}"
    file.write_text(json.dumps(content | changes))
    return file


@pytest.fixture
def compare(code: Importer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compares histories in a folder of its own, with `out` the output, and returns what scaling.json has."""
    monkeypatch.chdir(tmp_path)
    compare = code("compare_scaling", "compare")

    def run(*files: Path, **settings: Any) -> Any:
        given = {f"history_{number}": file for number, file in enumerate(files, start=1)} | settings
        words = [f"--{name}={value}" for name, value in (given | {"scaling": tmp_path / "out"}).items()]
        monkeypatch.setattr(compare, "arguments", lambda: arguments(folder_of("compare_scaling") / SPEC, words))
        compare.main()
        return json.loads((tmp_path / "out/scaling.json").read_text(), object_hook=lambda found: Namespace(**found))

    return run


def told(folder: Path) -> Any:
    return json.loads((folder / "out/scaling.json").read_text())


def test_throughput_efficiency_and_cost(compare: Any, tmp_path: Path) -> None:
    files = [history(tmp_path, count, rate) for count, rate in ((4, 200.0), (1, 100.0), (2, 160.0))]
    found = compare(*files, price_per_hour=36.0)
    assert [row.instance_count for row in found.rows] == [1, 2, 4]
    assert [row.world_size for row in found.rows] == [2, 4, 8]
    assert [row.throughput for row in found.rows] == pytest.approx([100, 160, 200])
    assert [row.step_seconds for row in found.rows] == pytest.approx([1, 0.625, 0.5])
    assert [row.speed_up for row in found.rows] == pytest.approx([1, 1.6, 2])
    assert [row.efficiency for row in found.rows] == pytest.approx([1, 0.8, 0.5])
    assert [row.gain for row in found.rows] == [None, pytest.approx(0.8), pytest.approx(0.625)]
    # 36 an hour is 0.01 a second: 100 samples for 0.01 are 100 for a million.
    assert [row.cost for row in found.rows] == pytest.approx([100, 125, 200])
    assert (found.kind, found.pays_up_to, found.stops_at) == ("strong", 2, 4)
    assert told(tmp_path)["notes"] == []


@pytest.mark.parametrize(
    ("rates", "least", "pays_up_to", "stops_at"),
    [
        ((100, 200, 400), 0.7, 4, None),
        ((100, 140, 196), 0.7, 4, None),
        ((100, 139, 300), 0.7, 1, 2),
        ((100, 160, 200), 0.7, 2, 4),
        ((100, 160, 200), 0.6, 4, None),
        ((100, 50, 25), 0.0, 4, None),
        ((100,), 0.7, 1, None),
    ],
)
def test_where_more_instances_stop_paying(
    compare: Any, tmp_path: Path, rates: tuple[float, ...], least: float, pays_up_to: int, stops_at: int | None
) -> None:
    found = compare(*(history(tmp_path, 2**at, rate) for at, rate in enumerate(rates)), min_efficiency=least)
    assert (found.pays_up_to, found.stops_at) == (pays_up_to, stops_at)
    assert ("stop paying" in told(tmp_path)["verdict"]) == (stops_at is not None)


def test_the_first_number_of_instances_need_not_be_one(compare: Any, tmp_path: Path) -> None:
    found = compare(history(tmp_path, 2, 100), history(tmp_path, 6, 150))
    assert [row.efficiency for row in found.rows] == pytest.approx([1, 0.5])


@pytest.mark.parametrize(
    ("batches", "kind"), [((100, 100), "strong"), ((100, 95), "strong"), ((100, 200), "weak"), ((100, 140), "mixed")]
)
def test_what_the_batch_makes_of_it(compare: Any, tmp_path: Path, batches: tuple[float, float], kind: str) -> None:
    files = [history(tmp_path, count, 100, batch) for count, batch in zip((1, 2), batches, strict=True)]
    assert compare(*files).kind == kind
    assert any("batch" in note for note in told(tmp_path)["notes"]) == (kind == "mixed")


def test_the_warm_up_is_left_out(compare: Any, tmp_path: Path) -> None:
    points = [{"step": 10, "seconds": 10.0, "samples": 100}, {"step": 20, "seconds": 1.0, "samples": 100}]
    for steps, rate in ((10, 100), (0, 55)):
        (row,) = compare(history(tmp_path, 1, 100, points=points), warm_up_steps=steps).rows
        assert row.throughput == pytest.approx(rate)
    points = [{"step": 20 * number, "seconds": 1.0 / number, "samples": 100} for number in (1, 2, 3)]
    (row,) = compare(history(tmp_path, 1, 100, points=points), warm_up_steps=30).rows
    assert row.throughput == pytest.approx(300)  # the second point has steps of the warm-up


def test_instances_that_share_a_machine_are_told_with_its_cores(compare: Any, tmp_path: Path) -> None:
    shared = [OWN | {"cores": 2}]
    compare(*(history(tmp_path, count, 100.0 * count, machines=shared) for count in (1, 2, 4)))
    (note,) = told(tmp_path)["notes"]
    assert "2 and 4 instances" in note
    assert "2 cores of one machine" in note
    assert note in (tmp_path / "out/scaling.html").read_text()


def test_a_shared_gpu_is_told(compare: Any, tmp_path: Path) -> None:
    compare(history(tmp_path, 2, 100, device="cuda", machines=[OWN | {"gpus": 1}]))
    assert "1 GPU and 8 cores of one machine" in told(tmp_path)["notes"][0]


@pytest.mark.parametrize(("later", "machine", "count"), [(5, "m0", 1), (20, "m0", 0), (5, "other", 0)])
def test_trainings_at_the_same_time_on_one_machine(
    compare: Any, tmp_path: Path, later: float, machine: str, count: int
) -> None:
    second = [OWN | {"name": machine}, OWN | {"name": "m9"}]
    compare(
        history(tmp_path, 1, 100, started=0.0, ended=10.0),
        history(tmp_path, 2, 200, started=later, ended=later + 10, machines=second),
    )
    assert sum("at the same time" in note for note in told(tmp_path)["notes"]) == count


def test_a_pace_that_changes_and_one_that_cannot_be_are_told(compare: Any, tmp_path: Path) -> None:
    seconds = [1, 1, 1, 1, 4, 4, 4, 4]
    points = [{"step": 10 * at, "seconds": second, "samples": 100} for at, second in enumerate(seconds, start=1)]
    compare(history(tmp_path, 1, 100, points=points), history(tmp_path, 2, 900))
    unsteady, above = told(tmp_path)["notes"]
    assert unsteady.startswith("The pace on 1 instance was not steady")
    assert above.startswith("On 2 instances the training scales better")


def test_a_history_of_a_language_model_and_one_that_says_little(compare: Any, tmp_path: Path) -> None:
    points = [{"step": step, "loss": 2.0, "seconds": 0.5, "peak_memory": 1.0} for step in (1, 10, 20)]
    about = {"instance_count": 1, "world_size": 2, "samples_per_step": 64, "points": points}
    (tmp_path / "h").write_text(json.dumps(about))
    (row,) = compare(tmp_path / "h").rows
    assert row.throughput == pytest.approx(128)
    assert "whether instances shared one is not known" in told(tmp_path)["notes"][-1]


@pytest.mark.parametrize(("price", "pictures"), [(None, 2), (36.0, 3)])
def test_the_page(compare: Any, tmp_path: Path, price: float | None, pictures: int) -> None:
    files = [history(tmp_path, count, rate) for count, rate in ((1, 100.0), (2, 160.0), (4, 200.0))]
    compare(*files, title="<Scaling> & more", **({"price_per_hour": price} if price else {}))
    page = (tmp_path / "out/scaling.html").read_text()
    assert page == (tmp_path / "outputs/scaling.html").read_text()
    assert "&lt;Scaling&gt; &amp; more" in page
    assert not re.search(r'https?:|//|src=|href="[^#]|@import|url\([^#]|\bnan\b|\binf\b', page)
    drawn = [ElementTree.fromstring(found) for found in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    assert len(drawn) == pictures
    assert all(sum("fill: var(--s" in use.get("style", "") for use in one.iter("use")) == 3 for one in drawn)
    for value in ("160", "1.60", "80%", "62%", *(["125", "200"] if price else [])):
        assert f"{value}</td>" in page
    assert ("cost of a million" in page) == bool(price)
    assert "Strong scaling" in page


def test_one_training_alone(compare: Any, tmp_path: Path) -> None:
    assert compare(history(tmp_path, 1, 100)).rows[0].efficiency == 1
    assert "does not show scaling" in told(tmp_path)["verdict"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("{", "is not a history"),
        ("[]", "is not a history"),
        ('{"points": [{"step": 11, "seconds": 1}], "instance_count": 1, "world_size": 1}', "samples_per_step"),
        ('{"points": [{"step": 11, "seconds": 0, "samples": 1}], "instance_count": 1, "world_size": 1}', "in 0 s"),
        ('{"points": [{"step": 11, "seconds": 1, "samples": 1}], "world_size": 1}', "instance_count"),
        ('{"points": [{"step": 11, "seconds": 1, "samples": 1}], "instance_count": 0, "world_size": 1}', "0 instances"),
        ('{"points": [{"step": 1, "seconds": 1, "samples": 1}], "instance_count": 1, "world_size": 1}', "first 10"),
        ('{"points": [], "instance_count": 1, "world_size": 1}', "has no point"),
    ],
)
def test_a_file_that_is_no_history(compare: Any, tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "h"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match=said):
        compare(history(tmp_path, 2, 4.0), file)
    assert not (tmp_path / "out").exists()


def test_histories_that_do_not_go_together(compare: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="several of them have instance_count 2"):
        compare(history(tmp_path, 2, 4.0), history(tmp_path, 2, 4.0))
    with pytest.raises(InputError, match="count image and token"):
        compare(history(tmp_path, 1, 4.0), history(tmp_path, 2, 4.0, sample="token"))
