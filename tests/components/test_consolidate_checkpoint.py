"""consolidate_checkpoint: the weights that ranks saved in parts, as safetensors and in an MLflow model."""

import argparse
import json
import os
import pickle
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from component_processes import COMPONENTS, Ended, run_script
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.distributed import checkpoint as dcp

from allranks.errors import InputError
from allranks.runtime.checkpoints.checkpoints import Checkpoints
from allranks.runtime.script import started

pytestmark = pytest.mark.slow

Importer = Callable[[str, str], Any]
Consolidate = Callable[..., dict[str, Tensor]]
SCRIPT = COMPONENTS / "model_management/consolidate_checkpoint/consolidate.py"

needs_deepspeed = pytest.mark.skipif(find_spec("deepspeed") is None, reason="needs allranks[deepspeed]")


def network() -> nn.Module:
    """A network with tied weights and a buffer."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(11, 6), nn.BatchNorm1d(4), nn.Linear(6, 11, bias=False))
    model[2].weight = model[0].weight
    return model


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoints of a model, of which the one at step 2 is the best."""
    folder = tmp_path_factory.mktemp("checkpoints")
    model = network()
    with pytest.MonkeyPatch.context() as patch, started() as ranks:
        patch.setattr("signal.signal", lambda number, handler: None)
        saves = Checkpoints(folder, ranks, {"model": model, "other": nn.Linear(1, 1)}, keep=9)
        for step, loss in ((1, 0.5), (2, 0.1), (3, 0.3)):
            with torch.no_grad():
                model[0].weight.fill_(step)
            saves.save(step, metric=loss)
    return folder


@pytest.fixture
def consolidate(code: Importer, checkpoints: Path, tmp_path: Path) -> Consolidate:
    """consolidate(name=value, ...): the weights that the component writes."""
    component = code("consolidate_checkpoint", "consolidate")

    def run(**changes: Any) -> dict[str, Tensor]:
        inputs = {"checkpoints": checkpoints, "template": None, "step": None, "best": "none", "part": "model"}
        inputs |= {"precision": "saved", "max_shard_size": 5.0, "weights": tmp_path / "weights"}
        component.consolidate(argparse.Namespace(**(inputs | {"model": tmp_path / "model"} | changes)))
        return read(tmp_path / "weights")

    return run


def read(folder: Path) -> dict[str, Tensor]:
    """The tensors of a folder, as Hugging Face's libraries find them."""
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return load_file(folder / "model.safetensors")
    places = json.loads(index.read_text())["weight_map"]
    return {name: load_file(folder / file)[name] for name, file in places.items()}


def test_the_newest_or_the_best_or_a_step(consolidate: Consolidate) -> None:
    for changes, step in (({"part": None}, 3), ({"best": "lowest"}, 2), ({"best": "highest"}, 1), ({"step": 2}, 2)):
        found = consolidate(**changes)
        assert set(found) == set(network().state_dict())
        assert torch.equal(found["0.weight"], torch.full((11, 6), float(step)))
        assert torch.equal(found["2.weight"], found["0.weight"])


def test_one_checkpoint_of_the_folder(consolidate: Consolidate, checkpoints: Path, tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    mounted.symlink_to(checkpoints / "step_000000001")
    assert float(consolidate(checkpoints=mounted)["0.weight"][0, 0]) == 1


def test_large_weights_are_several_files_with_an_index(consolidate: Consolidate, tmp_path: Path) -> None:
    whole = consolidate()
    parts = consolidate(max_shard_size=300e-9)
    assert len(list((tmp_path / "weights").glob("model-*.safetensors"))) > 1
    assert not (tmp_path / "weights/model.safetensors").exists(), "what an earlier attempt wrote"
    torch.testing.assert_close(parts, whole, rtol=0, atol=0)


def test_another_precision(consolidate: Consolidate) -> None:
    found = consolidate(precision="bfloat16")
    assert found["0.weight"].dtype == torch.bfloat16
    assert found["1.num_batches_tracked"].dtype == torch.int64


def prefixed(prefix: str) -> dict[str, Tensor]:
    return {prefix + name: torch.zeros_like(value) for name, value in network().state_dict().items()}


@pytest.mark.parametrize("kind", ["safetensors", "tied", "pt", "bin", "pt2"])
def test_a_model_with_other_weights_gets_these(consolidate: Consolidate, tmp_path: Path, kind: str) -> None:
    files = tmp_path / "template/data"
    files.mkdir(parents=True)
    (tmp_path / "template/MLmodel").write_text("flavors: {}")
    (files / "config.json").write_text("{}")
    if kind in ("safetensors", "tied"):
        state = prefixed("")
        if kind == "tied":
            del state["2.weight"]
        save_file(state, files / "model.safetensors", metadata={"format": "pt"})
        load: Callable[[], dict[str, Tensor]] = lambda: load_file(tmp_path / "model/data/model.safetensors")  # noqa: E731
    elif kind == "pt2":
        program = torch.export.export(nn.Sequential(network()).eval(), (torch.zeros(2, 4, dtype=torch.int64),))
        torch.export.save(program, files / "model.pt2")
        load = lambda: torch.export.load(tmp_path / "model/data/model.pt2").state_dict  # noqa: E731
    else:
        torch.save(prefixed("network."), files / f"weights.{kind}")
        load = lambda: torch.load(tmp_path / f"model/data/weights.{kind}")  # noqa: E731
    expected = consolidate(template=tmp_path / "template")
    found = {name.removeprefix("network.").removeprefix("0." if kind == "pt2" else ""): v for name, v in load().items()}
    if kind == "tied":
        del expected["2.weight"]
    torch.testing.assert_close(dict(found), expected, rtol=0, atol=0)
    assert (tmp_path / "model/MLmodel").is_file()
    assert (tmp_path / "model/data/config.json").is_file()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"0.weight": torch.zeros(11, 6), "1.weight": torch.zeros(4)}, "no weights 1.bias"),
        ({"0.weight": torch.zeros(11, 7)}, r"shape \(11, 7\).*\(11, 6\)"),
        ({"head": torch.zeros(1)}, "such as head"),
        (None, "no file of weights"),
    ],
)
def test_a_model_of_another_network(
    consolidate: Consolidate, tmp_path: Path, state: dict[str, Tensor] | None, message: str
) -> None:
    (tmp_path / "template").mkdir()
    (tmp_path / "template/MLmodel").write_text("flavors: {}")
    if state:
        save_file(state, tmp_path / "template/model.safetensors")
    with pytest.raises(InputError, match=f"input model: .*{message}"):
        consolidate(template=tmp_path / "template")
    assert not list(tmp_path.glob("model/*"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step": 7}, "input step: no checkpoint of step 7"),
        ({"part": "sampler"}, "input part: sampler"),
        ({"checkpoints": Path(__file__).parent}, "input checkpoints: no checkpoint in"),
        ({"template": Path(__file__).parent}, "input model: .* has no file MLmodel"),
    ],
)
def test_inputs_that_do_not_fit(consolidate: Consolidate, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        consolidate(**changes)


def save_dcp(folder: Path, **state: Any) -> None:
    dcp.save(state, checkpoint_id=folder, no_dist=True)


def test_what_torch_distributed_checkpoint_saved(consolidate: Consolidate, tmp_path: Path) -> None:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.zeros(2, 4, dtype=torch.int64)).sum().backward()
    optimizer.step()
    save_dcp(tmp_path / "saved/step-90", model=nn.Linear(1, 1).state_dict())
    save_dcp(tmp_path / "saved/step-100", model=model.state_dict(), optimizer=optimizer.state_dict(), step=100)
    save_dcp(tmp_path / "saved/weights", **model.state_dict())
    for changes in ({"part": None}, {"step": 100}, {"checkpoints": tmp_path / "saved/weights", "part": None}):
        found = consolidate(**({"checkpoints": tmp_path / "saved"} | changes))
        torch.testing.assert_close(found, dict(model.state_dict()), rtol=0, atol=0)
    assert set(consolidate(checkpoints=tmp_path / "saved", step=90)) == {"weight", "bias"}


def test_a_checkpoint_of_torch_without_a_model(consolidate: Consolidate, tmp_path: Path) -> None:
    save_dcp(tmp_path / "saved", net=network().state_dict(), other=nn.Linear(1, 1).state_dict(), step=1)
    with pytest.raises(InputError, match=r"input part: nothing, and the checkpoint has tensors in net.*, other"):
        consolidate(checkpoints=tmp_path / "saved", part=None)
    assert set(consolidate(checkpoints=tmp_path / "saved", part="other")) == {"weight", "bias"}
    with pytest.raises(InputError, match="input best: lowest"):
        consolidate(checkpoints=tmp_path / "saved", best="lowest")


def test_code_in_torchs_metadata_is_not_executed(
    consolidate: Consolidate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARM", str(tmp_path / "harm"))
    (tmp_path / "saved").mkdir()
    for content in (pickle.dumps(Harmful()), b"\x80\x04", b""):
        (tmp_path / "saved/.metadata").write_bytes(content)
        with pytest.raises(InputError, match=r"input checkpoints: .*\.metadata"):
            consolidate(checkpoints=tmp_path / "saved", part=None)
    assert not (tmp_path / "harm").exists()


def run_component(folder: Path, checkpoints: Path, *arguments: str) -> Ended:
    outputs = ["--weights", str(folder / "weights"), "--model", str(folder / "model")]
    return run_script(
        "consolidate_checkpoint", "--checkpoints", str(checkpoints), *arguments, *outputs, script=SCRIPT, folder=folder
    )


@pytest.fixture(scope="module")
def by_deepspeed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two ranks of DeepSpeed saved: see own_scripts/save_checkpoints.py."""
    folder = tmp_path_factory.mktemp("zero")
    script = Path(__file__).parent / "own_scripts/save_checkpoints.py"
    ended = run_script("consolidate_checkpoint", str(folder / "saved"), script=script, folder=folder, ranks=2)
    assert ended.codes == [0, 0], ended.errors
    return folder / "saved"


EACH = """
import runpy, sys

script, weights, *checkpoints = sys.argv[1:]
for number, folder in enumerate(checkpoints):
    sys.argv[1:] = ["--checkpoints", folder, "--weights", f"{weights}/{number}", "--model", f"{weights}/{number}/model"]
    runpy.run_path(script, run_name="__main__")
"""


@needs_deepspeed
def test_what_deepspeeds_ranks_saved(by_deepspeed: Path, tmp_path: Path) -> None:
    """In one process, which imports DeepSpeed once."""
    program = tmp_path / "each.py"
    program.write_text(EACH)
    saved = [by_deepspeed / name for name in ("zero2/ours", "zero3/ours", "zero3/deepspeed")]
    words = [str(SCRIPT), str(tmp_path / "weights"), *map(str, saved)]
    ended = run_script("consolidate_checkpoint", *words, script=program, folder=tmp_path)
    assert ended.codes == [0], ended.errors
    for number, folder in enumerate(saved):
        expected = torch.load(folder.parent / "weights.pt")
        torch.testing.assert_close(read(tmp_path / f"weights/{number}"), dict(expected), rtol=0, atol=0)


class Harmful:
    """An object that a pickle makes by calling a function."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(Path(os.environ["HARM"])),)


@needs_deepspeed
def test_code_in_deepspeeds_files_is_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARM", str(tmp_path / "harm"))
    folder = tmp_path / "checkpoints/global_step1"
    folder.mkdir(parents=True)
    for name in ("mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt"):
        torch.save({"optimizer_state_dict": Harmful()}, folder / name)
    (folder.parent / "latest").write_text("global_step1")
    ended = run_component(tmp_path, folder.parent)
    assert ended.codes == [2], ended
    assert "input checkpoints" in ended.errors[0]
    assert not (tmp_path / "harm").exists()
