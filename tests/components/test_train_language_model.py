"""train_language_model: the network and the parts of its training, and trainings as real processes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from component_processes import COMPONENTS

from allranks.errors import InputError

Importer = Callable[[str, str], Any]


@pytest.fixture
def gpt(code: Importer) -> Any:
    return code("train_language_model", "gpt")


@pytest.fixture
def training(code: Importer) -> Any:
    code("prepare_text", "prepared_text")
    return code("train_language_model", "train")


@pytest.mark.parametrize("length", [1, 7, 12])
def test_every_place_scores_every_token(gpt: Any, length: int) -> None:
    model = gpt.Gpt(gpt.Shape(vocabulary_size=50, block_size=12, layers=2, heads=4, width=16))
    assert model(torch.randint(50, (3, length))).shape == (3, length, 50)


def test_a_later_token_changes_no_earlier_score(gpt: Any) -> None:
    torch.manual_seed(0)
    model = gpt.Gpt(gpt.Shape(vocabulary_size=50, block_size=12, layers=2, heads=4, width=16))
    tokens = torch.randint(50, (2, 12))
    changed = tokens.clone()
    changed[:, 8] = (changed[:, 8] + 1) % 50
    before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :8], after[:, :8], rtol=0, atol=1e-6)
    assert (before[:, 8:] - after[:, 8:]).abs().amax(dim=(0, 2)).min() > 1e-4


def test_the_count_of_parameters(gpt: Any) -> None:
    model = gpt.Gpt(gpt.Shape(vocabulary_size=50, block_size=12, layers=3, heads=4, width=16))
    # One embedding for both ends; a block has 12 squares of the width, and two norms.
    expected = (50 + 12) * 16 + 3 * (12 * 16 * 16 + 2 * 2 * 16) + 2 * 16 + 16 * 16
    assert gpt.parameter_count(model) == expected
    assert sum(tensor.numel() for tensor in model.state_dict().values()) == expected


def test_at_first_every_token_is_as_likely(gpt: Any) -> None:
    torch.manual_seed(0)
    model = gpt.Gpt(gpt.Shape(vocabulary_size=1024, block_size=32, layers=3, heads=4, width=64))
    tokens = torch.randint(1024, (4, 33))
    loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    assert loss.item() == pytest.approx(np.log(1024), rel=0.02)


@pytest.mark.parametrize("total", [1, 2, 10, 1000])
def test_the_learning_rate_rises_to_its_peak_and_falls(training: Any, total: int) -> None:
    rates = [training.learning_rate(0.1, step, total) for step in range(total)]
    top = rates.index(max(rates))
    assert max(rates) == pytest.approx(0.1)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert min(rates) > 0


def test_windows_and_what_follows(code: Importer) -> None:
    windows = code("train_language_model", "windows")
    tokens = np.arange(60000, 60011, dtype=np.uint16)
    assert windows.count(tokens, 5) == 2
    assert windows.count(tokens[:10], 5) == 1
    assert windows.count(tokens[:0], 5) == 0
    seen, following = windows.batch(tokens, [1, 0], 5)
    assert seen.tolist() == [list(range(60005, 60010)), list(range(60000, 60005))]
    assert torch.equal(following, seen + 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"heads": 3}, "3 heads on a width of 16"),
        ({"accumulate": 3}, "a batch of 8 sequences in 3 passes"),
    ],
)
def test_inputs_that_do_not_go_together(training: Any, given: dict[str, int], said: str) -> None:
    args = {"heads": 4, "width": 16, "batch_size": 8, "accumulate": 2}
    training.check(argparse.Namespace(**args))
    with pytest.raises(InputError, match=said):
        training.check(argparse.Namespace(**args | given))


@pytest.mark.parametrize("length", [None, 16], ids=["no text", "short text"])
def test_data_that_cannot_be_used(
    code: Importer, training: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int | None
) -> None:
    monkeypatch.setattr(training.runtime, "stage", lambda source: source)
    if length is not None:
        prepared = code("prepare_text", "prepared_text")
        counts = dict.fromkeys(prepared.SPLITS, 1)
        description = prepared.Description("s", 257, 0, counts, counts, counts, {}, 1.0)
        prepared.write(tmp_path, description, "{}", dict.fromkeys(prepared.SPLITS, np.zeros(length, np.uint16)))
        assert training.data(tmp_path, length - 1)[1] == description
    with pytest.raises(InputError, match="holds no description.json" if length is None else "for a block_size of 16"):
        training.data(tmp_path, 16)


def test_both_components_pass_every_port_to_the_same_code() -> None:
    specs = [
        yaml.safe_load((COMPONENTS / name / "component.yaml").read_text())
        for name in ("train_language_model", "train_language_model_mpi")
    ]
    first, second = specs
    for name in {*first, *second} - {"name", "display_name", "description", "tags", "code", "inputs", "distribution"}:
        assert first[name] == second[name], name
    assert [spec["inputs"].pop("strategy")["default"] for spec in specs] == ["ddp", "deepspeed"]
    assert first["inputs"] == second["inputs"]
    assert [spec["distribution"]["type"] for spec in specs] == ["pytorch", "mpi"]
    ports = [*first["inputs"], "strategy", *first["outputs"]]
    passed = {word for word in first["command"].split() if word.startswith(("--", "$[[--"))}
    assert {word.removeprefix("$[[").removeprefix("--") for word in passed} == set(ports)
