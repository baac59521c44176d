"""Steps that run `true` under kfp.local: python kfp_local.py SHAPE COUNT FOLDER. Prints the seconds of the run.

Its fastest setting: the SubprocessRunner without a virtual environment a step, and without the `pip install kfp` that a
component otherwise begins with. That runner runs Python components alone, so each step is a Python that runs `true`;
without an order between them it runs them one after another all the same.
"""

# Without `from __future__ import annotations`: kfp reads a component's annotations, and texts are not types to it.
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
        before = None
        for _ in range(count):
            task = run_true()
            if before is not None and shape == "chain":
                task.after(before)
            before = task

    with contextlib.redirect_stdout(sys.stderr):
        started = time.perf_counter()
        steps()
        taken = time.perf_counter() - started
    print(taken)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
