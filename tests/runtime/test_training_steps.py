"""The steps of a training in one process: skipped ones, schedules, gradient norms, compilation, DDP's options."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from allranks import runtime
from allranks.errors import InputError
from allranks.runtime import strategies
from allranks.runtime.ranks.ranks import Ranks

pytestmark = pytest.mark.slow  # most of them train

STRATEGIES = ["ddp", "fsdp"]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.linear(hidden).relu()


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, hidden: Tensor) -> Tensor:
        for block in self.blocks:
            hidden = block(hidden)
        return hidden


def model_of() -> nn.Module:
    torch.manual_seed(0)
    return Model()


def training_of(ranks: Ranks, name: str, schedule: Any = None, fused: bool | None = None, **options: Any) -> Any:
    model = model_of()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=fused)
    return strategies.strategy(name, ranks.device).prepare(
        model, optimizer, runtime.TrainingSettings(**options), schedule
    )


def halving(optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
    return torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)


def step(training: Any, factor: float = 1.0) -> bool:
    training.backward(training.model(torch.ones(3, 4)).square().mean() * factor)
    stepped: bool = training.step()
    return stepped


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_step_with_infinite_gradients_is_skipped(alone: Ranks, name: str, fused: bool) -> None:
    training = training_of(alone, name, halving, fused, precision="float16", max_grad_norm=1.0)
    assert step(training)
    before, norm = training.weights(), training.gradient_norm.item()
    assert not step(training, factor=math.inf)
    assert training.optimizer.param_groups[0]["lr"] == 0.05, "the schedule went on"
    assert training.gradient_norm.item() == norm
    for key, value in training.weights().items():
        assert torch.equal(value, before[key])
    assert step(training)
    assert training.optimizer.param_groups[0]["lr"] == 0.025


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_state_dict_before_the_first_step_changes_nothing(alone: Ranks, tmp_path: Path, name: str) -> None:
    plain, saved, loaded = (training_of(alone, name, precision="float16") for _ in range(3))
    assert not step(saved, factor=math.inf)
    groups = saved.state_dict()["optimizer"]["param_groups"]
    checkpoints = runtime.Checkpoints(tmp_path / "checkpoints", alone, {"training": saved})
    checkpoints.save(1)
    checkpoints.close()
    runtime.Checkpoints(tmp_path / "checkpoints", alone, {"training": loaded}).load()
    for training in (plain, saved, loaded):
        assert step(training)
        assert {float(each["step"]) for each in training.optimizer.state.values()} == {1}
    for training in (saved, loaded):
        for key, value in plain.weights().items():
            assert torch.equal(training.weights()[key], value)
    assert groups == saved.state_dict()["optimizer"]["param_groups"]


def test_a_loss_that_stays_infinite_ends_the_training(alone: Ranks) -> None:
    training = training_of(alone, "ddp", precision="float16")
    for _ in range(16):  # from a scale of 2**16 to 1
        assert not step(training, factor=math.nan)
    with pytest.raises(FloatingPointError, match="at every loss scale"):
        step(training, factor=math.nan)


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_norm_is_that_of_the_gradient_before_it_is_clipped(alone: Ranks, name: str) -> None:
    model = model_of()
    model(torch.ones(3, 4)).square().mean().backward()
    expected = torch.nn.utils.get_total_norm([each.grad for each in model.parameters() if each.grad is not None])
    for limit in (1e-3, math.inf):
        training = training_of(alone, name, max_grad_norm=limit)
        assert training.gradient_norm is None
        step(training)
        assert training.gradient_norm.item() == pytest.approx(expected.item())
    training = training_of(alone, name, max_grad_norm=0.0)
    step(training)
    assert training.gradient_norm is None


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_schedule_goes_on_from_a_checkpoint(alone: Ranks, tmp_path: Path, name: str) -> None:
    saved = training_of(alone, name, halving, precision="float16", gradient_accumulation_steps=2)
    assert [step(saved) for _ in range(4)] == [False, True, False, True]
    resumed = training_of(alone, name, halving, precision="float16", gradient_accumulation_steps=2)
    for training in (saved, resumed):
        checkpoints = runtime.Checkpoints(tmp_path / "checkpoints", alone, {"training": training})
        checkpoints.load()
        checkpoints.save(2)
        checkpoints.close()
    for training in (saved, resumed):
        step(training), step(training)
        assert training.optimizer.param_groups[0]["lr"] == pytest.approx(0.1 / 8)
        assert training.gradient_accumulation_steps == 2


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ddp", {}),
        ("fsdp", {}),
        ("fsdp", {"precision": "bfloat16"}),  # torch keeps sums of such gradients elsewhere
    ],
)
def test_loading_drops_an_incomplete_step(alone: Ranks, tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    expected = training_of(alone, name, gradient_accumulation_steps=3, **options)
    training = training_of(alone, name, gradient_accumulation_steps=3, **options)
    checkpoints = runtime.Checkpoints(tmp_path / "checkpoints", alone, {"training": training})
    checkpoints.save(1)
    for passes in (1, 2):
        assert [step(training, factor=100.0) for _ in range(passes)] == [False] * passes
        checkpoints.load()
    checkpoints.close()
    for each in (expected, training):
        assert [step(each) for _ in range(6)] == [False, False, True] * 2
    for key, value in expected.weights().items():
        assert torch.equal(value, training.weights()[key])


@pytest.mark.parametrize(
    "schedule",
    [
        lambda optimizer: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer),
        lambda optimizer: optimizer,
        torch.optim.lr_scheduler.LRScheduler.__new__(torch.optim.lr_scheduler.StepLR),  # one that is already made
    ],
)
def test_schedules_that_cannot_be_stepped(alone: Ranks, schedule: Any) -> None:
    with pytest.raises(InputError, match="schedule"):
        training_of(alone, "ddp", schedule)


@pytest.fixture
def compiled() -> Iterator[Any]:
    """The counters of what torch.compile has compiled, from zero."""
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    yield counters
    torch._dynamo.reset()


@pytest.mark.recipe
@pytest.mark.parametrize(("name", "blocks"), [("ddp", ()), ("fsdp", (Block,))])
def test_compiled_models_give_the_same_gradients(
    alone: Ranks, name: str, blocks: tuple[type[nn.Module], ...], compiled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The C++ compiler has nothing to do with the strategy, and takes longer than all tests beside this one.
    compile_module = nn.Module.compile
    monkeypatch.setattr(nn.Module, "compile", lambda module: compile_module(module, backend="aot_eager"))
    plain = training_of(alone, name, max_grad_norm=1.0, blocks=blocks)
    step(plain)
    assert not compiled["stats"]
    training = training_of(alone, name, max_grad_norm=1.0, blocks=blocks, compile=True)
    step(training)
    assert compiled["stats"]["unique_graphs"] >= 1
    if blocks:
        assert not compiled["graph_break"]
    assert training.gradient_norm.item() == pytest.approx(plain.gradient_norm.item())


def test_blocks_that_torch_does_not_compile(alone: Ranks) -> None:
    with pytest.raises(InputError, match="compile: a Linear"):
        training_of(alone, "ddp", blocks=(nn.Linear,), compile=True)


class Difference(nn.Module):
    """A linear layer of small differences of large numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(1, 1)
        nn.init.ones_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.linear(inputs - 1000)


@pytest.mark.parametrize("blocks", [(), (Difference,)])
@pytest.mark.parametrize("name", STRATEGIES)
def test_inputs_keep_their_precision(alone: Ranks, name: str, blocks: tuple[type[nn.Module], ...]) -> None:
    model = nn.Sequential(Difference())
    settings = runtime.TrainingSettings(precision="bfloat16", blocks=blocks)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    training = strategies.strategy(name, alone.device).prepare(model, optimizer, settings)
    assert training.model(torch.tensor([[1001.0], [1002.0], [1003.0]])).flatten().tolist() == [1, 2, 3]


class Residual(nn.Module):
    """A block with normalization of a type, whose output is changed in place."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 4, 1)
        self.norm = norm

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.norm(self.convolution(inputs))
        outputs += inputs
        return nn.functional.relu(outputs, inplace=True)


@pytest.mark.parametrize(
    ("norm", "precision", "blocks"),
    [
        (lambda: nn.BatchNorm2d(4), "bfloat16", ()),
        (lambda: nn.BatchNorm2d(4), "float16", (Residual,)),
        (lambda: nn.BatchNorm2d(4), "bfloat16", (Residual, nn.BatchNorm2d)),
        (lambda: nn.BatchNorm2d(4, affine=False), "bfloat16", (Residual,)),
        (lambda: nn.GroupNorm(2, 4), "bfloat16", (Residual,)),
        (lambda: nn.LayerNorm(3), "float16", ()),
    ],
)
def test_normalization_in_16_bits(
    alone: Ranks, norm: Callable[[], nn.Module], precision: str, blocks: tuple[type[nn.Module], ...]
) -> None:
    """Of a float32 input, and of what a convolution returns."""
    norms = {}
    for name in STRATEGIES:
        torch.manual_seed(0)
        model = nn.Sequential(norm(), Residual(norm()), Residual(norm()))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        options = {"blocks": blocks, "activation_checkpointing": bool(blocks)} if name == "fsdp" else {}
        settings = runtime.TrainingSettings(precision=precision, max_grad_norm=math.inf, **options)
        training = strategies.strategy(name, alone.device).prepare(model, optimizer, settings)
        for _ in range(3):  # float16 may skip the first ones
            training.backward((training.model(torch.randn(2, 4, 3, 3)) - torch.randn(2, 4, 3, 3)).square().mean())
            training.step()
        norms[name] = training.gradient_norm.item()
    assert norms["fsdp"] == pytest.approx(norms["ddp"], rel=1e-2)


@pytest.mark.parametrize("activation_checkpointing", [False, True])
@pytest.mark.parametrize("blocks", [(Block, nn.Linear), (Model, Block)])
def test_blocks_inside_blocks(
    alone: Ranks, blocks: tuple[type[nn.Module], ...], activation_checkpointing: bool
) -> None:
    plain = training_of(alone, "fsdp", max_grad_norm=1.0)
    nested = training_of(
        alone, "fsdp", max_grad_norm=1.0, blocks=blocks, activation_checkpointing=activation_checkpointing
    )
    for training in (plain, nested):
        step(training)
    assert nested.gradient_norm.item() == pytest.approx(plain.gradient_norm.item())


def test_unused_parameters(alone: Ranks) -> None:
    plain = training_of(alone, "ddp", gradient_accumulation_steps=3)
    training = training_of(alone, "ddp", gradient_accumulation_steps=3, find_unused_parameters=True)
    assert training.model.find_unused_parameters
    for _ in range(6):
        assert step(training) == step(plain)
    for key, value in plain.weights().items():
        assert torch.equal(value, training.weights()[key])


def test_tf32_is_for_the_whole_process(alone: Ranks) -> None:
    before = torch.get_float32_matmul_precision()
    try:
        training_of(alone, "ddp", tf32=True)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
