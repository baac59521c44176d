"""Run steps of `true` with kfp.local: python kfp_local.py SHAPE COUNT FOLDER. Print the seconds of the run.

This is the fastest configuration: the SubprocessRunner without a virtual environment per step, and without the
`pip install kfp` at the start of a component. This runner supports Python components only, so each step is a Python
process that runs `true`. It runs independent steps one after another.
"""

# Without `from __future__ import annotations`: kfp reads a component's annotations, and strings are not types to it.
import contextlib
import sys
import time

from kfp import dsl, local


@dsl.component(install_kfp_package=False)
def run_true() -> None:
    import subprocess

    subprocess.run(["true"], check=True)


def main(shape: str, count: int, folder: str) -> None:
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=folder, raise_on_error=True)

    @dsl.pipeline
    def steps() -> None:
        previous = None
        for _ in range(count):
            task = run_true()
            if previous is not None and shape == "chain":
                task.after(previous)
            previous = task

    with contextlib.redirect_stdout(sys.stderr):
        started = time.perf_counter()
        steps()
        seconds = time.perf_counter() - started
    print(seconds)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
