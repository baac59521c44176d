"""The whole command, from the shell's prompt and back: `allranks run` of a job of one step.

The step makes one all-reduce over gloo (benchmarks/launches/ranks/pytorch.py) and gets an MLflow run, as by default.

allranks run job.yml --force-rerun
    Wall time, medians of 5, in a workspace that has had a run. Peer: torchrun alone, which starts the same file on as
    many ranks, one agent an instance, and neither reads a job nor writes logs, records or metrics.

import azure.ai.ml
    CPU time of the import, and together with reading the job, measured inside the process, medians of 5 new processes.
    Peer: the plain import.

first use of a workspace
    Wall time of a first run, which creates MLflow's database. Peer: the same command in a workspace that has one.
"""

import argparse
import itertools
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.figures import Figure, finish
from bench.timing import medians, run, seconds
from launches.launch import RANKS, layout_text
from launches.torchrun import VARIABLES, torchrun

from allranks.contract.layout import Layout

BIN = Path(sys.executable).parent
TIMES = 5
GOALS = {Layout(2, 2): 0.45, Layout(2, 8): 0.2}
IMPORT_GOAL = 0.5

JOB = """\
type: command
display_name: all-reduce
code: code
command: python pytorch.py ${{{{outputs.reached}}}}
outputs: {{reached: {{type: uri_folder}}}}
environment: azureml:allranks-pytorch:1
environment_variables: {variables}
resources: {{instance_count: {layout.instance_count}}}
distribution: {{type: pytorch, process_count_per_instance: {layout.process_count_per_instance}}}
"""

READ = """
import sys, tempfile, time
from pathlib import Path
from allranks.plan.reader import read_plan
from allranks.history import registered
from allranks.workspace import Workspace
from allranks.sdk.session import session
started = time.process_time()
{statement}
imported = time.process_time()
with tempfile.TemporaryDirectory() as folder:
    read_plan(sys.argv[1], {{}}, Path(folder, "snapshots"), registered.of(Workspace(Path(folder, "workspace"))))
print(imported - started, time.process_time() - imported)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("whole", "imports", "first"), help="measure these figures alone")
    only = parser.parse_args().only
    parts = {"whole": _whole, "imports": _imports, "first": _first_use}
    with tempfile.TemporaryDirectory(prefix="allranks-command-") as folder:
        figures = [figure for name, part in parts.items() if only in (None, name) for figure in part(Path(folder))]
    finish("From the shell's prompt and back", figures)


def _whole(folder: Path) -> Iterator[Figure]:
    for layout, goal in GOALS.items():
        print(f"{layout_text(layout)} ...", file=sys.stderr)
        ours = partial(seconds, _command(_job(folder, layout), folder / "workspace"))
        measured, peer = medians(TIMES, ours, partial(_torchrun, folder, layout))
        yield Figure(f"allranks run, {layout_text(layout)}, s (peer: torchrun)", measured, peer, goal, of="ratio")


def _torchrun(folder: Path, layout: Layout) -> float:
    started = time.perf_counter()
    torchrun(folder / "code", "pytorch.py", layout, folder / "reached")
    return time.perf_counter() - started


def _imports(folder: Path) -> Iterator[Figure]:
    job = str(_job(folder, Layout(1, 2)))
    statements = {"ours": "with session(client=False): pass", "plain": "import azure.ai.ml"}
    codes = {name: READ.format(statement=statement) for name, statement in statements.items()}
    taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in codes}
    for name in [*codes] * (TIMES + 1):
        taken[name].append(tuple(float(text) for text in run([sys.executable, "-c", codes[name], job]).split()))
    ours, plain = ([statistics.median(each) for each in zip(*taken[name][1:], strict=True)] for name in codes)
    yield Figure("import azure.ai.ml, s of CPU (peer: the plain import)", ours[0], plain[0], IMPORT_GOAL, of="ratio")
    name = "import azure.ai.ml and read a job of one step, s of CPU (peer: with the plain import)"
    yield Figure(name, sum(ours), sum(plain), IMPORT_GOAL, of="ratio")


def _first_use(folder: Path) -> Iterator[Figure]:
    job, number = _job(folder, Layout(1, 2)), itertools.count()
    first, later = medians(
        TIMES,
        lambda: seconds(_command(job, folder / f"first-{next(number)}")),
        lambda: seconds(_command(job, folder / "workspace")),
    )
    yield Figure("first use of a workspace, 1x2, s (peer: a later run)", first, later)


def _job(folder: Path, layout: Layout) -> Path:
    """Write the job beside its code, and return its file."""
    shutil.copytree(RANKS, folder / "code", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    (folder / "reached").mkdir(exist_ok=True)
    job = folder / f"{layout_text(layout)}.yml"
    threads = {"OMP_NUM_THREADS": VARIABLES["OMP_NUM_THREADS"]}
    job.write_text(JOB.format(variables=threads, layout=layout))
    return job


def _command(job: Path, workspace: Path) -> list[str]:
    slots = "16"  # as many ranks at once as torchrun starts
    return [str(BIN / "allranks"), "run", str(job), "--folder", str(workspace), "--force-rerun", "--slots", slots]


if __name__ == "__main__":
    main()
