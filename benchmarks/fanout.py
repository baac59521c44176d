"""What the engine adds to work that is spread over many small pieces.

parallel job
    A parallel step whose function returns at once, over 10,000 files with a mini-batch for each, in two workers on one
    instance. Wall time of `allranks run` that 9,990 more mini-batches take, per mini-batch, median of 3. Peer: a
    multiprocessing pool of two processes that maps the same function over the same lists.

sweep
    Trials of `sh` that report one value of the primary metric: wall time of `allranks run` that 190 more trials take,
    per trial, median of 3. Peer: Optuna alone, with the same sampler of random values, whose objective starts `sh`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.figures import Figure, finish
from bench.timing import medians, seconds

ALLRANKS = Path(sys.executable).parent / "allranks"
TIMES = 3
FEW, MANY = 10, 10_000
MINI_BATCH_GOAL_MS = 1.0
FEW_TRIALS, TRIALS = 10, 200
TRIAL_GOAL_MS = 12.0

SCRIPT = """\
def run(mini_batch):
    return [path[-5:] for path in mini_batch]
"""

JOB = """\
type: pipeline
jobs:
  score:
    type: parallel
    inputs: {{files: {{type: uri_folder, path: {files}}}}}
    outputs: {{rows: {{type: uri_file}}}}
    input_data: ${{{{inputs.files}}}}
    mini_batch_size: "1"
    max_concurrency_per_instance: 2
    task:
      type: run_function
      code: code
      entry_script: score.py
      environment: azureml:python:1
      append_row_to: ${{{{outputs.rows}}}}
"""

POOL = """\
import multiprocessing, os, sys
from score import run
if __name__ == "__main__":
    folder = sys.argv[1]
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    with multiprocessing.Pool(2) as pool, open(os.devnull, "w") as rows:
        for result in pool.imap(run, [[path] for path in paths]):
            rows.writelines(result)
"""

SWEEP = """\
type: sweep
trial:
  command: >-
    printf '{{"event": "progress", "step": 1, "metrics": {{"loss": %s}}, "total": 1, "epoch": 0, "time": 1}}\\n'
    ${{{{search_space.rate}}}} >> $ALLRANKS_REPORT
  environment: azureml:python:1
search_space: {{rate: {{type: uniform, min_value: 0, max_value: 1}}}}
sampling_algorithm: random
objective: {{goal: minimize, primary_metric: loss}}
limits: {{max_total_trials: {count}, max_concurrent_trials: 2}}
"""

STUDY = """\
import subprocess, sys
import optuna

def objective(trial):
    rate = trial.suggest_float("rate", 0, 1)
    return float(subprocess.run(["sh", "-c", f"echo {rate}"], capture_output=True, check=True).stdout)

optuna.logging.disable_default_handler()
study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
study.optimize(objective, n_trials=int(sys.argv[1]), n_jobs=2)
"""


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory(prefix="allranks-fanout-") as folder:
        figures = [*_mini_batches(Path(folder)), _trials(Path(folder))]
    finish("What a piece of spread work costs", figures)


def _mini_batches(folder: Path) -> Iterator[Figure]:
    (folder / "code").mkdir()
    (folder / "code/score.py").write_text(SCRIPT)
    (folder / "code/pool.py").write_text(POOL)
    measurements = []
    for count in (FEW, MANY):
        files = folder / f"files-{count}"
        files.mkdir()
        for number in range(count):
            (files / f"{number:05}").touch()
        job = folder / f"{count}.yml"
        job.write_text(JOB.format(files=files.name))
        measurements.append(partial(seconds, [str(ALLRANKS), "run", str(job), *_options(folder)]))
        measurements.append(partial(seconds, [sys.executable, str(folder / "code/pool.py"), str(files)]))
    few, pool_of_few, many, pool_of_many = medians(TIMES, *measurements)
    ours, peer = ((more - less) * 1000 / (MANY - FEW) for more, less in ((many, few), (pool_of_many, pool_of_few)))
    name = f"parallel job of {MANY:,} mini-batches, ms a mini-batch (peer: a multiprocessing pool)"
    yield Figure(name, ours, peer, MINI_BATCH_GOAL_MS)


def _trials(folder: Path) -> Figure:
    study = folder / "study.py"
    study.write_text(STUDY)
    measurements = []
    for count in (FEW_TRIALS, TRIALS):
        job = folder / f"sweep-{count}.yml"
        job.write_text(SWEEP.format(count=count))
        measurements.append(partial(seconds, [str(ALLRANKS), "run", str(job), *_options(folder)]))
        measurements.append(partial(seconds, [sys.executable, str(study), str(count)]))
    few, optuna_of_few, many, optuna_of_many = medians(TIMES, *measurements)
    ours, peer = (
        (more - less) * 1000 / (TRIALS - FEW_TRIALS) for more, less in ((many, few), (optuna_of_many, optuna_of_few))
    )
    return Figure(f"sweep of {TRIALS} trials, ms a trial (peer: Optuna alone)", ours, peer, TRIAL_GOAL_MS)


def _options(folder: Path) -> tuple[str, ...]:
    return ("--folder", str(folder / ".allranks"), "--instances", "loopback", "--force-rerun", "--no-track")


if __name__ == "__main__":
    main()
