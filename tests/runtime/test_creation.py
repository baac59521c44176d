"""A model that strategy.create builds has values on rank 0 only. test_strategies.py and test_fsdp.py share them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from allranks.errors import InputError
from allranks.runtime.strategies import preparation


@pytest.fixture
def rank(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let creation take this process for a rank."""
    return lambda number: monkeypatch.setattr(preparation.distributed, "get_rank", lambda: number)


def llama() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2
    )
    model: nn.Module = transformers.LlamaForCausalLM(config)
    return model


@pytest.mark.slow
def test_ranks_have_the_same_tensors_and_rank_0_their_values(rank: Callable[[int], None]) -> None:
    rank(0)
    expected = preparation.create(llama)
    rank(1)
    model = preparation.create(llama)
    tensors = [dict(each.named_parameters()) | dict(each.named_buffers()) for each in (expected, model)]
    assert [(name, value.shape) for name, value in tensors[0].items()] == [
        (name, value.shape) for name, value in tensors[1].items()
    ]
    assert not any(value.is_meta for value in tensors[0].values())
    assert all(value.is_meta for value in tensors[1].values())
    assert preparation.is_created(expected)
    assert preparation.is_created(model)
    assert not preparation.is_created(nn.Linear(1, 1))


def test_an_optimizer_keeps_its_parameters(rank: Callable[[int], None]) -> None:
    rank(1)
    model = preparation.create(lambda: nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    preparation.move_parameters(model, "cpu")
    assert [id(each) for each in optimizer.param_groups[0]["params"]] == [id(each) for each in model.parameters()]
    assert not any(each.is_meta for each in model.parameters())


def test_a_state_dict_may_be_loaded_in_the_function(rank: Callable[[int], None], tmp_path: Path) -> None:
    torch.save(nn.Linear(3, 3).state_dict(), tmp_path / "weights.pt")

    def build() -> nn.Module:
        model = nn.Linear(3, 3)
        model.load_state_dict(torch.load(tmp_path / "weights.pt", mmap=True))
        return model

    rank(1)
    assert preparation.create(build).weight.is_meta


def test_a_function_that_reads_values_is_refused(rank: Callable[[int], None]) -> None:
    rank(1)
    with pytest.raises(InputError, match="reads values of a tensor"):
        preparation.create(lambda: nn.Linear(int(torch.ones(3).sum().item()), 2))


def test_another_model_on_the_meta_device_is_refused() -> None:
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    with pytest.raises(InputError, match=r"strategy\.create"):
        preparation.is_created(model)
