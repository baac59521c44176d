"""autotune_deepspeed: what it asks DeepSpeed for, what it refuses, and the smallest tuning that there is."""

import json
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from component_processes import COMPONENTS, run
from launches import environment

from allranks.contract.rank_env import RankEnv
from allranks.errors import InputError

Importer = Callable[[str, str], Any]

SCRIPTS = Path(__file__).parent / "own_scripts"
CONFIG = {
    "train_micro_batch_size_per_gpu": "auto",
    "optimizer": {"type": "Adam", "params": {"lr": 0.001, "torch_adam": True}},
    "autotuning": {
        "max_train_micro_batch_size_per_gpu": 1,
        "num_tuning_micro_batch_sizes": 1,
        "start_profile_step": 2,
        "end_profile_step": 4,
    },
}


@pytest.fixture
def start(code: Importer) -> Any:
    return code("autotune_deepspeed", "start")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "ds_config.json"
    file.write_text(json.dumps(CONFIG))
    return file


def options(config: Path) -> Namespace:
    return Namespace(config=config, fast=True, metric="latency", max_micro_batch_size=8)


def test_what_the_user_has_set_stays(start: Any, config: Path, tmp_path: Path) -> None:
    found = start.settings(options(config), tmp_path)["autotuning"]
    assert (found["fast"], found["metric"], found["max_train_micro_batch_size_per_gpu"]) == (True, "latency", 1)
    assert found["results_dir"] == str(tmp_path / "results")


@pytest.mark.parametrize(
    ("content", "said"),
    [("{", "Expecting property name"), ("[]", "not a mapping"), ('{"train_batch_size": 8}', "key train_batch_size: 8")],
)
def test_a_configuration_that_cannot_be_tuned_is_refused(start: Any, config: Path, content: str, said: str) -> None:
    config.write_text(content)
    with pytest.raises(InputError, match=said):
        start.settings(options(config), config.parent)


def test_several_instances_are_refused(start: Any) -> None:
    with pytest.raises(InputError, match="2 processes on 2 instances"):
        start._check(RankEnv(world_size=2, instance_count=2, launcher="pytorch"))


@pytest.fixture(scope="module")
def best(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the smallest tuning that there is."""
    folder = tmp_path_factory.mktemp("tuning")
    config = folder / "ds_config.json"
    config.write_text(json.dumps(CONFIG | {"gradient_clipping": 0.25}))
    places = ["--source", str(SCRIPTS), "--config", str(config), "--results", str(folder / "results")]
    command = [
        sys.executable,
        str(COMPONENTS / "own_script/autotune_deepspeed/start.py"),
        *places,
        "--script",
        "tunable.py",
    ]
    variables = environment(folder, ["autotune_deepspeed", "run_pytorch"])
    ended = run([[*command, "--best", str(folder / "best.json")]], [variables], folder)
    assert ended.codes == [0], ended
    return folder / "best.json"


@pytest.mark.slow
@pytest.mark.recipe
def test_the_smallest_tuning(best: Path) -> None:
    found = json.loads(best.read_text())
    assert (found["train_micro_batch_size_per_gpu"], found["gradient_accumulation_steps"]) == (1, 1)
    assert found["gradient_clipping"] == 0.25
    assert not {"autotuning", "train_batch_size"} & set(found)
