"""Batch scoring as a user runs it: a classifier is trained, and scores files in workers on two instances."""

from pathlib import Path

import pytest

from allranks.plan.graph import Step
from allranks.plan.reader import read_plan
from allranks_command import allranks

PIPELINE = Path(__file__).resolve().parents[2] / "pipelines" / "score_images.py"


def test_the_workers_are_on_two_instances(tmp_path: Path) -> None:
    score = read_plan(str(PIPELINE), {}, tmp_path).graph.by_name["score_images"]
    assert isinstance(score, Step)
    assert score.parallel is not None
    assert (score.instance_count, score.parallel.max_concurrency, score.parallel.data) == (2, 2, ("images",))


@pytest.mark.slow
@pytest.mark.recipe
@pytest.mark.timeout(1800)
def test_each_image_has_the_class_that_it_shows(tmp_path: Path) -> None:
    ended = allranks("run", PIPELINE, "--json", folder=tmp_path, patience=900.0)
    assert ended.code == 0, ended.err
    rows = [line.split() for line in Path(ended.json["outputs"]["scores"]).read_text().splitlines()]
    assert len(rows) > 300
    right = [name for name, found, _ in rows if name.removesuffix(".png").partition("_")[2] == found]
    assert len(right) / len(rows) >= 0.95
