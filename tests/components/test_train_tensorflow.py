"""train_tensorflow, with workers and with parameter servers, and the evaluation of its models: real processes."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from component_processes import COMPONENTS
from launches import by_mpirun, environment

from allranks_steps.images import prepared_images
from tensorflow_tasks import ROOT, Ended, cluster, finish, needs_tensorflow, start

Tasks = dict[str, subprocess.Popen[bytes]]

pytestmark = [needs_tensorflow, pytest.mark.slow, pytest.mark.xdist_group("tensorflow")]

CODE = COMPONENTS / "image_classification/train_tensorflow"
SHARED = (COMPONENTS / "shared",)
HOROVOD_ENVIRONMENT = ROOT / ".venvs/allranks-tensorflow-horovod"
needs_horovod = pytest.mark.skipif(
    not list(HOROVOD_ENVIRONMENT.glob("lib/python3*/site-packages/horovod")), reason="make tensorflow-horovod"
)
SETTINGS = (
    *("--preset", "resnet_micro", "--num_train_epochs", 2, "--learning_rate", 0.005, "--max_grad_norm", 1),
    *("--lr_scheduler_type", "constant_with_warmup", "--warmup_steps", 4),
)
STEPS = 18
"""In batches of 128 images, of which an epoch has 9."""
ALIKE = 12
"""Steps in which two divisions of the same batches differ by rounding alone. Later Adam makes more of it, up to some
hundredths of a loss: so it does in one process on one core instead of two."""
PAIR = ("worker-0", "worker-1")


def begin(script: str, data: Path, folder: Path, tasks: dict[str, list[str]], *arguments: object) -> Tasks:
    names = [f"{role}-{index}" for role, endpoints in tasks.items() for index in range(len(endpoints))]
    options = ["--data", data, "--model", folder / "model", "--checkpoints", folder / "checkpoints"]
    options += ["--history", folder / "history.json", *SETTINGS, *arguments]
    return {name: start(folder, name, tasks, CODE / script, *options, path=SHARED) for name in names or ["worker-0"]}


def train(data: Path, folder: Path, tasks: dict[str, list[str]], *arguments: object) -> dict[str, Ended]:
    ended = finish(folder, begin("train.py", data, folder, tasks, *arguments))
    assert [task.code for task in ended.values()] == [0] * len(ended), ended
    return ended


def history(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "history.json").read_text())
    return content


def losses(folder: Path) -> list[float]:
    return [point["loss"] for point in history(folder)["points"]]


@pytest.fixture(scope="module")
def on_one(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the outputs of a training in one process."""
    folder = tmp_path_factory.mktemp("one")
    train(digits, folder, {}, "--per_device_train_batch_size", 128, "--logging_steps", 1)
    found = losses(folder)
    assert found[-1] < found[0] / 2, "this training learns nothing: it would prove nothing"
    return folder


@pytest.mark.recipe  # float16 is slow on a CPU
def test_mixed_precision_learns_alike_on_two_workers(digits: Path, on_one: Path, tmp_path: Path) -> None:
    """In the first steps."""
    # The loss is scaled too, and steps with too large gradients are left out.
    settings = ("--precision", "float16", "--max_steps", 5, "--logging_steps", 1, "--save_steps", 2)
    train(digits, tmp_path, cluster(worker=2), "--per_device_train_batch_size", 64, *settings)
    assert losses(tmp_path) == pytest.approx(losses(on_one)[:5], rel=0.05)
    assert losses(tmp_path)[-1] < 0.9 * losses(tmp_path)[0]
    written = history(tmp_path)
    assert (written["sample"], written["samples_per_step"], written["points"][0]["samples"]) == ("image", 128, 128)
    assert written["world_size"] == 2
    kept = {file.name for file in (tmp_path / "checkpoints").glob("*.index")}
    assert kept == {"ckpt-4.index", "ckpt-5.index"}
    assert (tmp_path / "model/MLmodel").is_file()


@pytest.mark.recipe
def test_an_evaluation_counts_every_image_once(digits: Path, on_one: Path, tmp_path: Path) -> None:
    script = COMPONENTS / "image_classification/evaluate_image_classifier_tensorflow/evaluate.py"
    options = ["--data", digits, "--model", on_one / "model", "--metrics", tmp_path / "metrics"]
    ended = finish(tmp_path, {"alone": start(tmp_path, "alone", {}, script, *options, path=SHARED)})["alone"]
    assert ended.code == 0, ended
    found = json.loads((tmp_path / "metrics/metrics.json").read_text())
    assert found["count"] == len(np.load(digits / "test_labels.npy"))
    assert found["accuracy"] > 0.5
    matrix = json.loads((tmp_path / "metrics/confusion_matrix.json").read_text())["data"]["matrix"]
    assert np.trace(matrix) / np.sum(matrix) == pytest.approx(found["accuracy"])


@pytest.mark.recipe
def test_two_workers_have_the_losses_of_one_process_which_goes_on_where_they_were_evicted(
    digits: Path, on_one: Path, tmp_path: Path
) -> None:
    """SIGTERM to the worker that is not the chief, between two points of the loss curve."""
    settings = ("--per_device_train_batch_size", 64, "--logging_steps", 6, "--save_steps", 1000)
    tasks = begin("train.py", digits, tmp_path, cluster(worker=2), *settings)
    try:
        wait_for(lambda: b'"step": 6' in read(tmp_path / "worker-0.report"), tasks)
        tasks["worker-1"].send_signal(signal.SIGTERM)
    finally:
        ended = finish(tmp_path, tasks)
    assert {name: task.code for name, task in ended.items()} == dict.fromkeys(PAIR, 143), ended
    (saved,) = (tmp_path / "checkpoints").glob("*.index")
    step = int(saved.stem.rpartition("-")[2])
    assert 6 <= step < STEPS, "the workers agree in every step"
    assert not (tmp_path / "model").exists()
    train(digits, tmp_path, {}, "--per_device_train_batch_size", 128, "--logging_steps", 1)
    found = {point["step"]: point["loss"] for point in history(tmp_path)["points"]}
    assert list(found) == [*range(6, step + 1, 6), *range(step + 1, STEPS + 1)]
    expected = dict(enumerate(losses(on_one), 1))
    assert found == {step: pytest.approx(expected[step], rel=0.05) for step in found}


@needs_horovod
@pytest.mark.recipe
def test_horovod_has_the_losses_of_the_strategy(digits: Path, on_one: Path, tmp_path: Path) -> None:
    """Another TensorFlow and another Keras, with the same code and the same images in every step."""
    options = ["--data", digits, "--model", tmp_path / "model", "--checkpoints", tmp_path / "checkpoints"]
    options += ["--history", tmp_path / "history.json", *SETTINGS, "--per_device_train_batch_size", 64]
    options += ["--logging_steps", 1]
    command = [str(HOROVOD_ENVIRONMENT / "bin/python"), str(CODE / "train_horovod.py"), *map(str, options)]
    variables = environment(tmp_path, ())
    variables["PYTHONPATH"] = os.pathsep.join(map(str, (*SHARED, ROOT / "src")))
    ended = by_mpirun(2, command, tmp_path, variables, str(HOROVOD_ENVIRONMENT))
    assert ended.codes == [0], ended
    assert losses(tmp_path)[:ALIKE] == pytest.approx(losses(on_one)[:ALIKE], rel=2e-3)
    assert (history(tmp_path)["launcher"], history(tmp_path)["strategy"]) == ("mpi", "horovod")
    assert (tmp_path / "model/MLmodel").is_file()


@pytest.mark.recipe  # tests/runtime/test_tensorflow_runtime.py shows how parameter servers end
def test_parameter_servers_train_and_end_with_the_chief(digits: Path, tmp_path: Path) -> None:
    """SIGTERM to the parameter server first: the chief saves its variables, and the next attempt goes on."""
    settings = ("--per_device_train_batch_size", 64, "--num_train_epochs", 4, "--lr_scheduler_type", "cosine")
    settings = (*settings, "--save_steps", 40)
    tasks = begin("train_parameter_server.py", digits, tmp_path, cluster(worker=2, ps=1), *settings)
    try:
        wait_for(lambda: b'"step": 10' in read(tmp_path / "worker-0.report"), tasks)
        tasks["ps-0"].send_signal(signal.SIGTERM)
    finally:
        ended = finish(tmp_path, tasks)
    assert {name: task.code for name, task in ended.items()} == {"worker-0": 143, "worker-1": 0, "ps-0": 0}, ended
    assert list((tmp_path / "checkpoints").glob("*.index"))
    ended = finish(tmp_path, begin("train_parameter_server.py", digits, tmp_path, cluster(worker=2, ps=1), *settings))
    assert {name: task.code for name, task in ended.items()} == {"worker-0": 0, "worker-1": 0, "ps-0": 0}, ended
    assert losses(tmp_path)[-1] < losses(tmp_path)[0] / 2
    assert (tmp_path / "model/MLmodel").is_file()
    assert "checkpoint" in {file.name for file in (tmp_path / "checkpoints").iterdir()}


REFUSED = {
    "train": {
        "--per_device_train_batch_size 5000": "input per_device_train_batch_size: 5000 on each of 1",
        "--preset resnet50": "input preset: resnet50 with images of 8 x 8 pixels",
        "--resume_from_checkpoint .": "input resume_from_checkpoint: . holds no checkpoint",
        "--data .": "input data: . holds no dataset.json",
        "--data other_classes": "input data: the validation split has the label 9, but dataset.json lists 9 classes",
    },
    "train_parameter_server": {"": "distribution: no parameter server"},
}


@pytest.fixture(scope="module")
def tried(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process has found, whose start is most of the time."""
    tmp_path = tmp_path_factory.mktemp("tried")
    program = tmp_path / "try_all.py"
    program.write_text(TRY_ALL)
    pixels = np.arange(24, dtype=np.uint8).reshape(24, 1, 1, 1)  # each image's only pixel is its number
    splits = {"train": prepared_images.Images(pixels, np.arange(24) % 2)}
    (tmp_path / "numbers").mkdir()
    prepared_images.write(tmp_path / "numbers", prepared_images.describe("numbers", ("even", "odd"), splits), splits)
    fewer = shutil.copytree(digits, tmp_path / "other_classes")
    labels = np.load(fewer / "train_labels.npy")
    np.save(fewer / "train_labels.npy", np.where(labels == 9, 0, labels))
    description = json.loads((fewer / "dataset.json").read_text())
    (fewer / "dataset.json").write_text(json.dumps(description | {"classes": description["classes"][:9]}))
    options = ["--spec", CODE / "component.yaml", "--data", digits, *SETTINGS]
    options += ["--model", "model", "--checkpoints", "checkpoints", "--history", "history"]
    refused = json.dumps({script: list(arguments) for script, arguments in REFUSED.items()})
    path = (CODE, *SHARED)
    (ended,) = finish(tmp_path, {"alone": start(tmp_path, "alone", {}, program, refused, *options, path=path)}).values()
    assert ended.code == 0, ended
    assert not (tmp_path / "model").exists()
    found: dict[str, Any] = json.loads(ended.output.splitlines()[-1])
    return found


def test_each_worker_of_a_parameter_server_reads_its_own_share(tried: dict[str, Any]) -> None:
    # Two epochs of a share each: every image of it as often, in two orders, and no image of the other one.
    first, second = tried["orders"]
    assert sorted(first) == sorted(2 * list(range(0, 24, 2)))
    assert sorted(second) == sorted(2 * list(range(1, 24, 2)))
    assert first[:12] != first[12:]


def test_what_cannot_be_trained_is_refused_by_name(tried: dict[str, Any]) -> None:
    for script, arguments in REFUSED.items():
        for argument, said in arguments.items():
            assert said in tried[script][argument]
    assert "input per_device_train_batch_size: 700, while each of 2 workers has 629 of" in tried["shares"]
    # On the CPU, on a T4, an A100, and a device that does not say what it is.
    gpus = [["float16", "float32"], ["bfloat16", "bfloat16"], ["float32", "float32"]]
    assert tried["auto"] == ["float32", *gpus]
    assert "output checkpoints: " in tried["room"]
    assert "3 of 8192.0 TiB at a time" in tried["room"]  # two to keep, and the next one


TRY_ALL = """\
import importlib, json, sys, types
from pathlib import Path

import tensorflow as tf
from worker_data import worker_data

from allranks.errors import InputError
from allranks.runtime import arguments, tensorflow
from allranks.runtime.metrics.metrics import Metrics
from allranks.runtime.tensorflow.strategy import single_process_strategy
from allranks_steps.images.prepared_images import read

tried, *options = sys.argv[1:]
found = {}
for script, each in json.loads(tried).items():
    module = importlib.import_module(script)
    function = getattr(module, "main", None) or module.train
    for argument in each:
        sys.argv[1:] = [*options, *argument.split()]
        try:
            function(tensorflow.Training(0, 1, "worker", True, single_process_strategy(), None, Metrics(is_main=True)))
        except InputError as error:
            found.setdefault(script, {})[argument] = str(error)
saving = importlib.import_module("saving")
too_large = types.SimpleNamespace(variables=[types.SimpleNamespace(shape=(2**26, 2**24), dtype="float32")])
sys.argv[1:] = options
try:
    saving.check_room(arguments(), too_large, too_large)
except InputError as error:
    found["room"] = str(error)
try:
    importlib.import_module("worker_data").check_shares(1259, 700, 2)
except InputError as error:
    found["shares"] = str(error)
automatic = importlib.import_module("optimization").automatic
found["orders"] = []
numbers = Path("numbers")
for share in range(2):
    order = []
    batches = worker_data(numbers, read(numbers, "train"), 4, 0, shares=2, share=share, horizontal_flip=False)
    for pixels, labels in batches.take(6):
        images = pixels.numpy().flatten().tolist()
        assert [number % 2 for number in images] == labels.numpy().tolist()
        order += images
    found["orders"].append(order)
found["auto"] = [automatic()]
tf.config.list_physical_devices = lambda kind: [kind]
for details in ({"compute_capability": (7, 5)}, {"compute_capability": (8, 0)}, {}):
    tf.config.experimental.get_device_details = lambda _, found=details: found
    found["auto"].append([automatic(), automatic(scales_loss=False)])
print(json.dumps(found))
"""


def read(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""


def wait_for(condition: Callable[[], bool], tasks: Tasks) -> None:
    deadline = time.monotonic() + 150
    while not condition():
        assert time.monotonic() < deadline
        assert all(task.poll() is None for task in tasks.values())
        time.sleep(0.05)
