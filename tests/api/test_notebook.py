"""The Python API in a notebook's kernel."""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

import allranks
import bounded
from allranks.api.run import Run
from allranks.workspace import Workspace

JOB = {
    "command": "echo ${{inputs.number}}; while [ -e ${{inputs.wait_for}} ]; do sleep 0.05; done",
    "environment": "azureml:any@latest",
    "inputs": {"number": 0, "wait_for": "/none"},
}

START = """
import allranks

def start(**inputs):
    return allranks.run("job.yml", inputs=inputs, track=False, instances="loopback")
"""

PATIENCE = 120.0


class Kernel:
    """A running kernel that executes cells one by one."""

    def __init__(self, folder: Path) -> None:
        self.notebook = new_notebook()
        resources = {"metadata": {"path": str(folder)}}
        self.client = NotebookClient(self.notebook, timeout=PATIENCE, kernel_name="python3", resources=resources)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the kernel, as Jupyter does to interrupt a cell."""
        self.client.km.provisioner.process.send_signal(number)

    def execute(self, source: str, *, allow_errors: bool = False) -> tuple[str, str]:
        """Execute a cell. Return what it printed, and the HTML that it shows at its end."""
        self.client.allow_errors = allow_errors
        cell = new_code_cell(source)
        self.notebook.cells.append(cell)
        self.client.execute_cell(cell, len(self.notebook.cells) - 1)
        printed = "".join(output.get("text", "") for output in cell.outputs)
        html = "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)
        errors = "".join(output["ename"] for output in cell.outputs if output.output_type == "error")
        return printed + errors, html


@contextlib.contextmanager
def started(folder: Path) -> Iterator[Kernel]:
    """A kernel in a folder with a job."""
    (folder / "job.yml").write_text(yaml.safe_dump(JOB))
    kernel = Kernel(folder)
    with kernel.client.setup_kernel():
        kernel.execute(START)
        yield kernel


# Starting a kernel and the engine in it takes most of the time.
@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def kernel(folder: Path) -> Iterator[Kernel]:
    with started(folder) as kernel:
        yield kernel


@pytest.mark.xdist_group("notebook")
def test_several_runs_at_once_with_a_view_of_one(kernel: Kernel) -> None:
    printed, _ = kernel.execute(
        "runs = [start(number=number) for number in range(6)]\n"
        "for run in runs:\n"
        "    run.wait()\n"
        "print(sorted(int(run.logs()) for run in runs) == list(range(6)), {str(run.status) for run in runs})"
    )
    assert printed == "True {'Completed'}\n"
    printed, html = kernel.execute("runs[0].wait()")
    assert "Completed" in html
    assert "job" in html


@pytest.mark.xdist_group("notebook")
def test_interrupting_a_cell_stops_only_its_run(kernel: Kernel, folder: Path) -> None:
    """A second run of the same kernel continues to its end."""
    gate = folder / "gate"
    gate.touch()
    printed, _ = kernel.execute(
        f"stopped, other = start(wait_for='{gate}'), start(wait_for='{gate}', number=1)\nprint(stopped.id, other.id)"
    )
    workspace = Workspace.at(folder / ".allranks")
    stopped, other = (Run(identity, workspace) for identity in printed.split())
    interrupter = threading.Thread(target=_interrupt_when_shown, args=(kernel, len(kernel.notebook.cells)))
    interrupter.start()
    printed, _ = kernel.execute("stopped.wait()", allow_errors=True)
    bounded.join(interrupter)
    assert "KeyboardInterrupt" in printed
    assert (stopped.status, other.status) == ("Canceled", "Running")
    gate.unlink()
    printed, _ = kernel.execute("print(other.wait().status)")
    assert printed.endswith("Completed\n")


def _interrupt_when_shown(kernel: Kernel, number: int) -> None:
    """Interrupt a cell when it shows a run, so that it waits for it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        cells = kernel.notebook.cells[number:]
        if cells and cells[0].outputs:
            kernel.signal(signal.SIGINT)
            return
        time.sleep(0.05)


def test_the_kernels_runs_end_with_it(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    with started(tmp_path) as kernel:
        printed, _ = kernel.execute(f"run = start(wait_for='{gate}')\nprint(run.id)")
        kernel.signal(signal.SIGKILL)
    run = allranks.Run(printed.strip(), Workspace.at(tmp_path / ".allranks"))
    assert run.wait(PATIENCE, check=False).status == "Canceled"
