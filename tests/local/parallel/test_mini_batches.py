"""The program of a parallel step, as the engine starts it on one instance: batches, results, thresholds."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest

from allranks.contract import report
from allranks.history.records import StepRecord
from allranks.images import venv
from allranks.local.attempt.environment import MINI_BATCH_PROGRAM, mini_batch_command
from allranks.plan import mltable
from allranks.plan.graph import Parallel, Step

pytestmark = pytest.mark.slow  # pandas takes a second to import

NAMES = """
import os
def run(batch):
    print("run", *map(os.path.basename, batch))
    return [os.path.basename(path) for path in batch]
"""


class Trial:
    """A parallel step on one instance, whose data is a folder of five files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data, self.out = folder, folder / "data", folder / "out" / "rows.txt"
        self.data.mkdir()
        for letter in "abcde":
            (self.data / letter).write_text(letter)

    def run(
        self, script: str, *arguments: str, python: str = sys.executable, **settings: Any
    ) -> subprocess.CompletedProcess[str]:
        (self.folder / "score.py").write_text(dedent(script))
        table = mltable.read(self.data)
        parallel = Parallel("score.py", "${{inputs.data}}", **{"mini_batch_size": 2, "max_concurrency": 1, **settings})
        whole = {
            **asdict(parallel),
            "inputs": [[str(self.data), table.paths if table else None, table.transformations if table else []]],
            "append": str(self.out),
            "concurrency": parallel.max_concurrency,
            "rank": 0,
            "count": 1,
            "socket": str(self.folder / "hub"),
            "report": report.__file__,
        }
        for name in ("hub", "hub.over", "reports"):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "settings.json").write_text(json.dumps(whole))
        return subprocess.run(
            [python, MINI_BATCH_PROGRAM, "settings.json", "score.py", *arguments],
            cwd=self.folder,
            env={"PATH": "", report.VARIABLE: str(self.folder / "reports")},
            capture_output=True,
            text=True,
            timeout=100,
        )

    def failure(self) -> str:
        (failure,) = [each for each in report.read(self.folder / "reports")[0] if isinstance(each, report.Failure)]
        return failure.type

    def rows(self) -> list[str]:
        return self.out.read_text().splitlines()


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


def test_results_are_in_the_order_of_the_files_whatever_worker_has_them(trial: Trial) -> None:
    done = trial.run(
        """
        import sys, os, time
        def init():
            print("init", *sys.argv)
        def run(batch, mini_batch_context):
            time.sleep(0.02 / (1 + mini_batch_context.minibatch_index))
            return tuple(os.path.basename(path) for path in batch)
        def shutdown():
            print("shutdown")
        """,
        *("--label", "x y"),
        max_concurrency=3,
    )
    assert done.returncode == 0, done.stderr
    assert trial.rows() == list("abcde")
    lines = done.stdout.splitlines()
    assert lines.count("init score.py --label x y") == lines.count("shutdown") >= 1
    assert lines[-1] == "3 of 3 mini-batches succeeded; 0 items failed"


@pytest.mark.parametrize("version", ["3.7", "3.8", "3.9"])
def test_workers_run_with_an_old_python(trial: Trial, version: str) -> None:
    if (python := venv.find_python(version, None)) is None:
        pytest.skip(f"this machine has no Python {version}")
    script = """
        import os, sys
        def init(): assert sys.version_info < (3, 10)
        def run(batch):
            if batch[0].endswith("c"): os.kill(os.getpid(), 9)
            return [os.path.basename(path) for path in batch]
        def shutdown(): pass
        """
    done = trial.run(script, python=python, max_retries=1)
    assert done.returncode == 0, done.stderr
    assert trial.rows() == ["a", "b", "e"]
    assert trial.run(script, python=python, mini_batch_error_threshold=0).returncode == 1
    assert trial.failure().startswith("1 mini-batches failed, at most 0 may")


FAILURES = {
    "no run": ("x = 1", {}, "score.py: it defines no function run(mini_batch) (worker 0 of instance 0)"),
    "init": (
        "def init():\n    1 / 0\ndef run(batch): return batch",
        {},
        "score.py:2: ZeroDivisionError: division by zero (worker 0 of instance 0)",
    ),
    "import": ("import missing_one", {}, "score.py:1: ModuleNotFoundError: No module named 'missing_one'"),
    "syntax": ("\ndef run(", {}, "score.py:2: SyntaxError: '(' was never closed"),
    "killed in init": ("import os\nos.kill(os.getpid(), 9)", {}, "worker 0 of instance 0 ended while it imported"),
    "nothing returned": ("\ndef run(batch): pass", {}, "score.py:2: run() returned None, not a list or a DataFrame"),
    "text returned": ("def run(batch): return 'ab'", {}, "score.py:1: run() returned an object of type str, not"),
    "too few": (
        "def run(batch): return batch[:1]",
        {"error_threshold": 1},
        "2 items failed, at most 1 may; score.py:1: run() returned 1 for 2 items",
    ),
    "an item": (
        "def run(batch):\n    raise ValueError(batch[0][-1])",
        {"mini_batch_error_threshold": 0, "max_retries": 0},
        "1 mini-batches failed, at most 0 may; the last one, mini-batch 0 (a and 1 more): score.py:2: ValueError: a",
    ),
    "exit": (
        "import sys\ndef run(batch): sys.exit(4)",
        {"error_threshold": 3, "max_retries": 0},
        "4 items failed, at most 3 may; the last one, mini-batch 1 (c and 1 more): score.py:2: SystemExit: 4",
    ),
}


@pytest.mark.parametrize(("script", "settings", "found"), FAILURES.values(), ids=FAILURES)
def test_a_failure_names_the_line(trial: Trial, script: str, settings: dict[str, Any], found: str) -> None:
    done = trial.run(script, **settings)
    assert done.returncode == 1
    assert trial.failure().startswith(found)
    assert not trial.out.exists()


def test_failed_items_within_the_thresholds_leave_the_others(trial: Trial) -> None:
    script = """
        import os
        def run(batch):
            assert not batch[0].endswith("c")
            return [os.path.basename(path) for path in batch]
        """
    done = trial.run(script, error_threshold=2, max_retries=2)
    assert done.returncode == 0
    assert trial.rows() == ["a", "b", "e"]
    assert "(c and 1 more) failed on worker 0 of instance 0, try 3 of 3: score.py:4: AssertionError" in done.stderr


def test_a_slow_mini_batch_loses_its_worker_and_is_tried_again(trial: Trial) -> None:
    done = trial.run(
        """
        import os, pathlib, time
        def run(batch):
            mark = pathlib.Path("seen")
            if batch[0].endswith("c") and not mark.exists():
                mark.touch()
                time.sleep(1000)
            return [os.path.basename(path) for path in batch]
        """,
        timeout=1,
    )
    assert done.returncode == 0
    assert "try 1 of 3: it took longer than the time-out of 1 s" in done.stderr
    assert trial.rows() == list("abcde")


TABLE = "paths: [{pattern: ./*.csv}]\ntransformations: [{read_delimited: {delimiter: ','}}"
SUMS = """
import os
def run(rows, mini_batch_context):
    print("sum", len(rows), rows["n"].sum(), mini_batch_context.partition_key_value)
    return rows[["n"]] * 2
"""
TABLES = {
    "rows by size": (f"{TABLE}]", {"mini_batch_size": 19}, ["sum 3 6 None", "sum 3 15 None"]),
    "partitions": (
        f"{TABLE}]",
        {"partition_keys": ("shop",)},
        ["sum 3 9 {'shop': 'x'}", "sum 3 12 {'shop': 'y'}"],
    ),
}


@pytest.mark.parametrize(("table", "settings", "sums"), TABLES.values(), ids=TABLES)
def test_rows_of_a_table(trial: Trial, table: str, settings: dict[str, Any], sums: list[str]) -> None:
    pytest.importorskip("pandas")
    (trial.data / "MLTable").write_text(table)
    for part in (0, 1):
        rows = "".join(f"{n},{'xy'[n % 2 == 0]}\n" for n in range(3 * part + 1, 3 * part + 4))
        (trial.data / f"part{part}.csv").write_text(f"n,shop\n{rows}")
    done = trial.run(SUMS, **{"mini_batch_size": None, **settings})
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("sum")] == sums
    assert sum(map(int, trial.rows())) == 2 * sum(int(line.split()[2]) for line in sums)


def test_a_table_that_cannot_be_divided(trial: Trial) -> None:
    (trial.data / "MLTable").write_text("paths: [{file: ./x.csv}]")
    assert trial.run(NAMES).returncode == 1
    assert "has no files" in trial.failure()


def test_the_processes_of_an_engine_that_was_killed_do_not_find_the_settings_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, parallel = Step("score", "python score.py"), Parallel("score.py", "${{inputs.data}}")
    record = StepRecord("score", "score", "", "none", 1, 1, folder=str(tmp_path))
    instance: Any = SimpleNamespace(inputs={"data": str(tmp_path)}, outputs={})
    files = []
    for process in (7, 8):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        words = shlex.split(mini_batch_command(step, parallel, record, instance, 0))
        files.append(Path(words[2]))
    assert [file.exists() for file in files] == [False, True]
