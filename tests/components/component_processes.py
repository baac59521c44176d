"""Components run as real processes, as a platform runs them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from allranks.contract import produce
from allranks.contract.launch import Launch
from allranks.contract.pytorch import PyTorch
from forked import Forked

COMPONENTS = Path(__file__).parents[2] / "components"
BOUND_SECONDS = 200


@dataclass(frozen=True)
class Ended:
    """How the processes of a component ended: exit codes and standard errors by rank, what all of them printed."""

    codes: list[int]
    output: str
    errors: list[str]


def run_script(
    component: str,
    *arguments: str,
    script: Path,
    folder: Path,
    ranks: int = 1,
    included: Sequence[str] = ("prepare_images", "get_champion"),
) -> Ended:
    """Run a component's script, in a folder of its own, on so many ranks; one is a plain process with no launcher.

    included: the components of whose folders it has files in its snapshot
    """
    code = [str(COMPONENTS / name) for name in (component, *included)]
    environment = clean() | {"PYTHONPATH": os.pathsep.join(code), "OMP_NUM_THREADS": "1"}
    if ranks == 1:
        return fork(script, arguments, [environment], folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    job = Launch(PyTorch(ranks), ("127.0.0.1",), ("localhost",), master_port=port)
    environments = [environment | produce.environment(job, process) for process in produce.processes(job)]
    return fork(script, arguments, environments, folder)


def run_small_script(component: str, *arguments: str, folder: Path, included: Sequence[str] = ()) -> Ended:
    """Run the script of a component that imports nothing large, as a process of its own.

    included: the components of whose folders it has files in its snapshot
    """
    path = os.pathsep.join(str(COMPONENTS / name) for name in included)
    script = str(COMPONENTS / component / f"{component}.py")
    return run([[sys.executable, script, *arguments]], [clean() | {"PYTHONPATH": path}], folder)


def execute(
    component: str, inputs: dict[str, object], outputs: dict[str, Path], folder: Path, **variables: str
) -> Ended:
    """Run a component that mldesigner wrote, by the command that mldesigner gives it."""
    command = [shutil.which("mldesigner", path=str(Path(sys.executable).parent)) or "mldesigner", "execute"]
    command += ["--source", str(COMPONENTS / component / "component.py"), "--name", component]
    command += ["--inputs", *(f"{name}={value}" for name, value in inputs.items())]
    command += ["--outputs", *(f"{name}={path}" for name, path in outputs.items())]
    return run([command], [clean() | variables], folder)


def run(commands: list[list[str]], environments: list[dict[str, str]], folder: Path) -> Ended:
    processes = [
        subprocess.Popen(
            command,
            env=variables | temporary(folder),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command, variables in zip(commands, environments, strict=True)
    ]
    try:
        ended = [process.communicate(timeout=BOUND_SECONDS) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    codes = [process.returncode for process in processes]
    return Ended(codes, "".join(output for output, _ in ended), [error for _, error in ended])


def fork(script: Path, arguments: tuple[str, ...], environments: list[dict[str, str]], folder: Path) -> Ended:
    with tempfile.TemporaryDirectory() as outputs:
        ranks = [Path(outputs) / str(rank) for rank in range(len(environments))]
        processes = [
            Forked(script, list(arguments), variables | temporary(folder), folder, rank)
            for variables, rank in zip(environments, ranks, strict=True)
        ]
        try:
            codes = [process.wait(BOUND_SECONDS) for process in processes]
        finally:
            for process in processes:
                process.send_signal(signal.SIGKILL)
                process.wait()
        output = "".join(rank.with_suffix(".out").read_text() for rank in ranks)
        return Ended(codes, output, [rank.with_suffix(".err").read_text() for rank in ranks])


def temporary(folder: Path) -> dict[str, str]:
    """The variable that keeps a process's temporary files in its own folder."""
    place = folder / "temporary"
    place.mkdir(parents=True, exist_ok=True)
    return {"TMPDIR": str(place)}


def clean() -> dict[str, str]:
    """This environment without what a launcher or a tracking server would have set; no bytecode beside the code."""
    told = ("AZUREML_", "AZ_BATCH", "MLFLOW_", "ALLRANKS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(told)}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"}


def train(data: Path, folder: Path, *arguments: str, ranks: int = 1) -> Ended:
    places = ["--data", str(data), "--model", str(folder / "model"), "--checkpoints", str(folder / "checkpoints")]
    places += ["--history", str(folder / "history")]
    script = COMPONENTS / "train_image_classifier/train.py"
    return run_script("train_image_classifier", *places, *arguments, script=script, folder=folder, ranks=ranks)


def evaluate(data: Path, model: Path, folder: Path, *arguments: str, ranks: int = 1) -> Ended:
    places = ["--data", str(data), "--model", str(model), "--metrics", str(folder / "metrics")]
    script = COMPONENTS / "evaluate_image_classifier/evaluate.py"
    included = ("prepare_images", "get_champion", "train_image_classifier")
    return run_script(
        "evaluate_image_classifier", *places, *arguments, script=script, folder=folder, ranks=ranks, included=included
    )


def shard(data: Path, shards: Path, folder: Path, *arguments: str, ranks: int = 1) -> Ended:
    places = ["--data", str(data), "--shards", str(shards)]
    script = COMPONENTS / "shard_dataset/shard_dataset.py"
    included = ("prepare_images", "train_image_classifier")
    return run_script(
        "shard_dataset", *places, *arguments, script=script, folder=folder, ranks=ranks, included=included
    )
