"""A recorded model has the values of an ordinary one, computed one tensor after another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from allranks.errors import InputError
from allranks.runtime.strategies import deferred


class Model(nn.Module):
    """What models do to their tensors: constants, buffers, views, tied weights, values that depend on each other."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4, padding_idx=0)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.inner = nn.Linear(4, 4)
        nn.init.orthogonal_(self.inner.weight)
        nn.init.trunc_normal_(self.inner.bias.view(2, 2))
        self.norm = nn.BatchNorm1d(4)
        self.scale = nn.Parameter(torch.ones(3) * torch.tensor(0.5) + torch.randn(3))
        self.rate = torch.linspace(0, 1, 3, device="cpu")[1].item()
        self.register_buffer("table", torch.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("frequencies", 1 / torch.arange(1, 5) ** 0.5, persistent=False)
        self.register_buffer("mask", torch.tril(torch.ones(4, 4)) == 0)


def llama() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2
    )
    model: nn.Module = transformers.LlamaForCausalLM(config)
    return model


def values(model: nn.Module) -> dict[str, torch.Tensor]:
    return dict(model.named_parameters()) | dict(model.named_buffers())


@pytest.mark.parametrize("build", [Model, llama])
def test_a_recorded_model_has_the_values_of_an_ordinary_one(build: Callable[[], nn.Module]) -> None:
    torch.manual_seed(3)
    expected, later = build(), torch.rand(2)
    torch.manual_seed(3)
    model = deferred.record(build)
    assert torch.equal(torch.rand(2), later), "what is drawn next is not what it would have been"
    assert all(value.is_meta for name, value in values(model).items())
    recording = deferred.take(model)
    assert recording is not None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    deferred.fill(model, recording)
    found = values(model)
    assert list(found) == list(values(expected))
    for name, value in values(expected).items():
        assert torch.equal(found[name], value), name
    assert {id(each) for each in optimizer.param_groups[0]["params"]} == {id(each) for each in model.parameters()}


def test_one_tensor_is_in_memory_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def build() -> nn.Module:
        model = nn.Sequential(*(nn.Linear(8, 8, bias=False) for _ in range(20)))
        for parameter in model.parameters():
            nn.init.normal_(parameter)  # the values that the layers set themselves are replaced
        return model

    held: list[int] = []
    repeat = deferred._repeat

    def counted(operation: deferred._Operation, storages: dict[int, torch.UntypedStorage]) -> None:
        repeat(operation, storages)
        held.append(len(storages))

    recording = deferred.take(deferred.record(build))
    assert recording is not None
    # `empty` allocates no memory until it is written to.
    recording.operations = [each for each in recording.operations if "empty" not in str(each.function)]
    monkeypatch.setattr(deferred, "_repeat", counted)
    assert len(list(recording.values())) == 20
    assert max(held) == 1


def test_a_state_dict_is_loaded_in_the_function(tmp_path: Path) -> None:
    saved = nn.Linear(3, 3)
    torch.save(saved.state_dict(), tmp_path / "weights.pt")

    def build() -> nn.Module:
        model = nn.Linear(3, 3)
        model.load_state_dict(torch.load(tmp_path / "weights.pt", mmap=True))
        return model

    recording = deferred.take(deferred.record(build))
    assert recording is not None
    for name, value in recording.values():
        assert torch.equal(value, saved.state_dict()[name])


def test_a_function_that_reads_values_is_refused() -> None:
    def build() -> nn.Module:
        return nn.Linear(int(torch.ones(3).sum().item()), 2)

    with pytest.raises(InputError, match="reads values of a tensor"):
        deferred.record(build)


def test_a_model_on_the_meta_device_without_a_recording_is_refused() -> None:
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    with pytest.raises(InputError, match=r"strategy\.create"):
        deferred.take(model)
