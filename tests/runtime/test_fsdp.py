"""What ranks have of one model under fully_shard."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from allranks.contract.pytorch import PyTorch
from allranks.runtime.ranks.ranks import Ranks
from allranks.runtime.strategies import fsdp, preparation

KINDS = [f"{size} {create}" for size in (None, 1) for create in (False, True)]
"""Ranks that share a copy of the model, and whether strategy.create has built it."""

pytestmark = pytest.mark.slow  # they look at the same job


@pytest.fixture(scope="module")
def ranks(start_module: Callable[..., Any]) -> list[dict[str, Any]]:
    """What each of two ranks has found."""
    ended = start_module("fsdp_ranks.py", distribution=PyTorch(2)).wait()
    assert [rank.code for rank in ended] == [0, 0], ended
    return [json.loads(rank.stdout.splitlines()[-1]) for rank in ended]


@pytest.mark.parametrize("kind", KINDS)
def test_every_rank_begins_with_the_weights_of_rank_0(ranks: list[dict[str, Any]], kind: str) -> None:
    expected = ranks[0]["weights"]["1 False"]  # its own copy
    for found in ranks:
        assert found["weights"][kind] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_replicas_stay_equal(ranks: list[dict[str, Any]], kind: str) -> None:
    assert ranks[0]["trained"][kind] == ranks[1]["trained"][kind] != ranks[0]["weights"][kind]


@pytest.mark.parametrize("kind", KINDS)
def test_every_rank_goes_on_with_random_numbers_of_its_own(ranks: list[dict[str, Any]], kind: str) -> None:
    assert ranks[0]["drawn"][kind] != ranks[1]["drawn"][kind]


def test_groups_of_ranks_have_the_time_out_of_all(ranks: list[dict[str, Any]]) -> None:
    for found in ranks:
        assert found["timeouts"] == [60, 60, 60]


def test_buffers_are_not_offloaded(alone: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    model = preparation.create(lambda: nn.BatchNorm1d(3))
    values = model.state_dict()
    preparation.move_parameters(model, "meta")
    device = torch.device("meta")  # in place of a GPU: any device but the CPU
    monkeypatch.setattr(torch.distributed, "broadcast", lambda *_, **__: None)
    fsdp._fill(model, values, device, offload=True)
    assert [parameter.tolist() for parameter in model.parameters()] == [[1, 1, 1], [0, 0, 0]]
    assert {buffer.device for buffer in model.buffers()} == {device}
