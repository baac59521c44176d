"""The parts of train_image_classifier: presets, augmentation, checks and schedule."""

import argparse
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from component_processes import folder_of

from allranks import runtime
from allranks.errors import InputError
from allranks_steps.schedule import Schedule

# They import Transformers and build models: seconds apiece.
pytestmark = pytest.mark.slow

Importer = Callable[[str, str], Any]
DIGITS = tuple("0123456789")


@pytest.fixture
def presets(code: Importer) -> Any:
    return code("train_image_classifier", "allranks_steps.images.presets")


@pytest.fixture
def augmentation(code: Importer) -> Any:
    return code("train_image_classifier", "allranks_steps.images.image_data.augmentation")


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("resnet_micro", 0.079),
        ("convnextv2_micro", 0.056),
        ("resnet18", 11.2),
        ("resnet50", 23.5),
        ("convnextv2_tiny", 27.9),
        ("convnextv2_base", 87.7),
        ("vit_small", 21.7),
        ("vit_base", 85.8),
        ("vit_large", 303.3),
        ("swin_tiny", 27.5),
        ("swin_base", 86.8),
    ],
)
def test_every_preset_has_the_size_that_its_paper_gives(
    code: Importer, presets: Any, name: str, millions: float
) -> None:
    channels = 1 if name.endswith("micro") else 3
    config = presets.configuration(name, presets.network_size(name, 0, None), channels, DIGITS)
    with torch.device("meta"):
        model = code(
            "train_image_classifier", "allranks_steps.images.classifier"
        ).AutoModelForImageClassification.from_config(config)
    assert sum(parameter.numel() for parameter in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.02)
    assert code("train_image_classifier", "allranks_steps.images.classifier").blocks(model)


@pytest.mark.parametrize(
    ("name", "image_size", "images", "size"),
    [
        ("resnet_micro", 0, (8, 8), (16, 16)),
        ("resnet_micro", 0, (28, 20), (28, 20)),
        ("convnextv2_micro", 0, (8, 8), (8, 8)),
        ("vit_base", 0, None, (224, 224)),
        ("vit_base", 384, (100, 100), (384, 384)),
    ],
)
def test_images_have_their_own_size_in_the_network_or_the_one_that_is_set(
    presets: Any, name: str, image_size: int, images: tuple[int, int] | None, size: tuple[int, int]
) -> None:
    assert presets.network_size(name, image_size, images) == size


@pytest.mark.parametrize(
    ("name", "image_size", "images", "place"),
    [
        ("vit_base", 0, (32, 30), "input model"),
        ("resnet18", 0, (8, 8), "input model"),
        ("swin_tiny", 100, None, "input image_size"),
    ],
)
def test_a_size_that_a_preset_cannot_take_is_refused(
    presets: Any, name: str, image_size: int, images: tuple[int, int] | None, place: str
) -> None:
    with pytest.raises(InputError) as raised:
        presets.network_size(name, image_size, images)
    assert raised.value.problems[0].where == place


def test_a_preset_without_stochastic_depth_refuses_a_rate(presets: Any) -> None:
    assert presets.configuration("swin_tiny", (224, 224), 3, DIGITS, 0.3).drop_path_rate == 0.3
    for name in ("vit_small", "resnet18"):
        with pytest.raises(InputError, match="input drop_path_rate"):
            presets.configuration(name, (224, 224), 3, DIGITS, 0.3)


def test_the_model_normalises_and_resizes_by_itself(code: Importer) -> None:
    class Network(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> Any:
            return SimpleNamespace(logits=images.flatten(1))

    classifier = code("train_image_classifier", "allranks_steps.images.classifier").ImageClassifier
    pixels = torch.tensor([51, 102, 153, 255], dtype=torch.uint8).reshape(1, 2, 1, 2)
    plain = classifier(Network(), (0.2, 0.6), (0.1, 0.5), None)
    torch.testing.assert_close(plain(pixels), torch.tensor([[0.0, 2.0, 0.0, 0.8]]))
    resized = classifier(Network(), (0.2, 0.6), (0.1, 0.5), (2, 4))
    assert resized(pixels).shape == (1, 2 * 2 * 4)


@pytest.mark.parametrize("name", ["linear", "cosine", "constant", "constant_with_warmup"])
@pytest.mark.parametrize("total", [1, 2, 10, 300])
def test_the_learning_rate_rises_to_its_peak_and_does_not_rise_again(name: str, total: int) -> None:
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    schedule = Schedule(name, total, total // 10)(optimizer)
    rates = []
    for _ in range(total):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    top = rates.index(max(rates))
    assert max(rates) == pytest.approx(0.1)
    assert top == (0 if name == "constant" else total // 10)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert min(rates) > 0
    assert (rates[-1] < 0.02) == (name in ("linear", "cosine") and total > 9)


def test_an_image_is_shifted_and_then_mirrored(augmentation: Any) -> None:
    draws = torch.rand(50, augmentation.DRAWS)
    pixels = torch.randint(0, 256, (50, 3, 7, 6), dtype=torch.uint8)
    moved = augmentation.augment(pixels, draws, augmentation.Augmentation(max_shift=2, horizontal_flip=True), crop=True)
    steps = (draws[:, 4:6] * 5).floor().int() - 2
    assert set(steps.unique().tolist()) == {-2, -1, 0, 1, 2}
    padded = torch.nn.functional.pad(pixels, (2, 2, 2, 2))
    for index in range(50):
        right, down = steps[index].tolist()
        expected = padded[index, :, 2 + down : 9 + down, 2 + right : 8 + right]
        assert torch.equal(moved[index], expected.flip(2) if draws[index, 6] < 0.5 else expected)


@pytest.mark.parametrize("policy", ["none", "trivialaugment", "randaugment"])
def test_an_image_changes_alike_in_whichever_batch_it_comes(augmentation: Any, policy: str) -> None:
    settings = augmentation.Augmentation(0.3, 1, True, policy)
    draws = torch.rand(60, augmentation.DRAWS)
    pixels = torch.randint(0, 256, (60, 3, 12, 12), dtype=torch.uint8)
    together = augmentation.augment(pixels, draws, settings, crop=True)
    assert together.dtype == torch.uint8
    assert not torch.equal(together, pixels)
    order = torch.randperm(60)
    one = torch.cat([augmentation.augment(pixels[i : i + 1], draws[i : i + 1], settings, crop=True) for i in order])
    assert (one.int() - together[order].int()).abs().max() <= 1  # rounded in another order


def test_without_augmentation_nothing_changes(augmentation: Any) -> None:
    pixels = torch.randint(0, 256, (4, 3, 8, 8), dtype=torch.uint8)
    draws = torch.rand(4, augmentation.DRAWS)
    assert augmentation.augment(pixels, draws, augmentation.Augmentation(), crop=True) is pixels


def test_every_operation_of_a_policy_changes_images_within_their_range(code: Importer) -> None:
    policies = code("train_image_classifier", "allranks_steps.images.image_data.policies")
    images = torch.rand(1, 3, 16, 16)
    for number, name in enumerate(policies.OPERATIONS):
        draws = torch.tensor([[(number + 0.5) / len(policies.OPERATIONS), 0.9, 0.9, 0, 0, 0]])
        recoloured = policies.recolour(images, draws, "trivialaugment")
        moved = policies.geometry(draws, "trivialaugment", 16, 16)
        assert (name in policies.COLOURS) == (not torch.equal(recoloured, images)), name
        assert (name in policies.MOVES) == (not torch.equal(moved[0], torch.eye(3))), name
        assert 0 <= recoloured.min() <= recoloured.max() <= 1


def test_crops_lie_within_the_image_and_have_their_share(code: Importer) -> None:
    decoding = code("train_image_classifier", "allranks_steps.images.image_data.decoding")
    random = np.random.default_rng(0)
    for _ in range(200):
        left, upper, right, lower = decoding.random_box(300, 200, 0.25, random.random(4))
        assert 0 <= left < right <= 300 + 1e-9
        assert 0 <= upper < lower <= 200 + 1e-9
        assert (right - left) * (lower - upper) >= 0.2 * 300 * 200
    assert decoding.centre_box(8, 8, (8, 8)) == (0, 0, 8, 8)
    assert decoding.centre_box(512, 256, (224, 224)) == (144, 16, 368, 240)


def test_mixed_images_have_mixed_labels(code: Importer) -> None:
    mixing = code("train_image_classifier", "mixing")
    pixels, labels = torch.zeros(2, 1, 10, 10), torch.tensor([0, 2])
    pixels[1] = 100
    for settings in (mixing.Mixing(mixup_alpha=0.5), mixing.Mixing(cutmix_alpha=0.5)):
        mixed, targets = mixing.mix(pixels, labels, settings, 3, np.random.default_rng(3))
        assert 0 < targets[0, 2] < 1
        torch.testing.assert_close(targets.sum(dim=1), torch.ones(2))
        torch.testing.assert_close(mixed.mean(dim=(1, 2, 3)) / 100, targets[:, 2], atol=1e-5, rtol=0)


def test_the_digest_of_the_code_covers_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from allranks_steps.images.saving import code_digest

    monkeypatch.setattr("sys.argv", [str(tmp_path / "train.py")])
    digests = []
    for text in ("a = 1", "a = 2", "a = 1"):
        (tmp_path / "train.py").write_text(text)
        digests.append(code_digest())
    assert digests[0] == digests[2] != digests[1]


def defaults() -> argparse.Namespace:
    """The inputs of a training that gives only those that it must."""
    spec = folder_of("train_image_classifier") / "component.yaml"
    return runtime.arguments(spec, ["--data", "d", "--model", "m", "--checkpoints", "c", "--history", "h"])


def test_the_models_of_the_spec_are_the_presets(presets: Any) -> None:
    spec = yaml.safe_load((folder_of("train_image_classifier") / "component.yaml").read_text())
    assert spec["inputs"]["model"]["enum"] == list(presets.PRESETS)


def test_two_models_to_start_from_are_refused(code: Importer) -> None:
    args = argparse.Namespace(**vars(defaults()) | {"initial_model": Path("i"), "pretrained_model": Path("p")})
    with pytest.raises(InputError, match="input initial_model: given beside pretrained_model"):
        code("train_image_classifier", "architecture").start_from(args)


@pytest.mark.parametrize(
    ("step", "epoch", "left", "resumed"), [(6, 3, 0, 9), (5, 3, 2, 9), (9, 6, 3, 9), (4, 0, 3, 13)]
)
def test_a_resumed_training_takes_the_steps_of_its_remaining_epochs(
    code: Importer, step: int, epoch: int, left: int, resumed: int
) -> None:
    checks, args = code("train_image_classifier", "checks"), defaults()
    args.num_train_epochs, args.gradient_accumulation_steps = 6, 2

    class Loader:
        sampler = SimpleNamespace(batches_left=left)

        def __init__(self) -> None:
            self.epoch = epoch

        def __len__(self) -> int:
            return 3

    assert checks.steps_when_resumed(args, step, 9, Loader(), SimpleNamespace(is_main=True)) == resumed


@pytest.mark.parametrize(
    ("count", "drop_last", "place"),
    [(1, False, "data"), (63, True, "dataloader_drop_last"), (65, False, "dataloader_drop_last")],
)
def test_too_few_images_are_refused(code: Importer, count: int, drop_last: bool, place: str) -> None:
    checks, args = code("train_image_classifier", "checks"), defaults()
    args.dataloader_drop_last = drop_last
    ranks, model = SimpleNamespace(world_size=2, full_world_size=2), torch.nn.BatchNorm2d(3)
    checks.check_batches(args, model, 64, ranks)
    with pytest.raises(InputError) as raised:
        checks.check_batches(args, model, count, ranks)
    assert raised.value.problems[0].where == f"input {place}"
