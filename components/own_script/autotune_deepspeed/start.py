"""Find the fastest DeepSpeed configuration for a user's script by short runs."""

import argparse
import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from allranks.runtime import EVICTED, RankEnv, arguments, detect, prepare_libraries
from allranks_steps.messages import bad_input
from allranks_steps.own_script import command_line

BEST = "ds_config_optimal.json"
"""File name of the autotuner's best configuration."""

SHOWN = 15
"""Number of lines of an experiment's stderr in the error message."""


def tune(args: argparse.Namespace) -> None:
    """Run the autotuner and write the best configuration.

    Raise InputError if the configuration or the launch is not supported, RuntimeError if no run succeeded,
    TimeoutError if the time limit is exceeded.
    """
    _check(detect())
    work = args.results.resolve() / "autotuning"
    work.mkdir(parents=True, exist_ok=True)
    config = work / "ds_config.json"
    config.write_text(json.dumps(settings(args, work), indent=2) + "\n", encoding="utf-8")
    script = command_line(args)
    prepare_libraries()
    # Without a GPU, DeepSpeed reads the number of devices from this variable.
    os.environ["LOCAL_SIZE"] = str(args.processes)
    tuner = [sys.executable, str(Path(__file__).with_name("tuner.py")), "--num_gpus", str(args.processes)]
    _run([*tuner, *script, "--deepspeed_config", str(config)], work, 60 * args.minutes)
    best = work / "results" / BEST
    if not best.is_file():
        raise RuntimeError(f"no run of {args.script} succeeded. The last one said:\n{_last_errors(work)}")
    # A training on another number of ranks has another train_batch_size.
    found = json.loads(best.read_text(encoding="utf-8"))
    found.pop("train_batch_size", None)
    args.best.parent.mkdir(parents=True, exist_ok=True)
    args.best.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(f"best configuration: {json.dumps(found)}", flush=True)


def settings(args: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Return the user's configuration with an autotuning section, in which the user's values override the inputs."""
    where = f"input config ({args.config})"
    try:
        config = json.loads(args.config.read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise ValueError("not a mapping")
    except (OSError, ValueError) as error:
        expected = "a DeepSpeed configuration as JSON"
        raise bad_input(where, str(error), expected, "correct the file") from None
    if "train_batch_size" in config:
        found = f"{config['train_batch_size']}, which leaves nothing to tune"
        expected = "no train_batch_size: it follows from the micro batch that is found"
        raise bad_input(f"{where}, key train_batch_size", found, expected, "take the key out")
    from_inputs = {
        "fast": args.fast,
        "metric": args.metric,
        "max_train_micro_batch_size_per_gpu": args.max_micro_batch_size,
    }
    from_user = config.get("autotuning", {})
    folders = {"exps_dir": str(work / "exps"), "results_dir": str(work / "results")}
    return config | {"autotuning": from_inputs | from_user | folders | {"enabled": True, "overwrite": True}}


def _check(env: RankEnv) -> None:
    if env.world_size > 1:
        raise bad_input(
            "resources.instance_count and distribution.process_count_per_instance",
            f"{env.world_size} processes on {env.instance_count} instances",
            "1 process on 1 instance: the autotuner starts the other processes, and uses ssh for other instances",
            "set both to 1, and processes to the number that is to be tuned for",
        )
    for module in ("deepspeed", "tabulate"):
        if find_spec(module) is None:
            expected = "DeepSpeed with what its autotuner needs"
            raise bad_input(sys.executable, f"no {module}", expected, "pip install 'allranks[deepspeed]'")


def _run(command: list[str], folder: Path, seconds: float) -> None:
    # Its own session, so that its whole process group can be killed, also on the eviction of the instance.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EVICTED))
    with subprocess.Popen(command, cwd=folder, start_new_session=True) as process:
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the autotuner did not end within {seconds / 60:g} minutes") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if code:
        raise RuntimeError(f"the autotuner ended with exit code {code}")


def _last_errors(work: Path) -> str:
    logs = sorted(work.rglob("stderr.log"), key=lambda file: file.stat().st_mtime)
    return "\n".join(logs[-1].read_text(errors="replace").splitlines()[-SHOWN:]) if logs else "nothing"


if __name__ == "__main__":
    tune(arguments())
