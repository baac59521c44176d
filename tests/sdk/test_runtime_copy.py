"""The runtime goes with the code that uses it, and only with that."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import allranks
import allranks_steps
from allranks.errors import InputError
from allranks.sdk import runtime_copy
from allranks.sdk.files import FileList, copy_links, list_path
from allranks.sdk.runtime_copy import with_runtime
from allranks.sdk.session import session
from pipeline_files import write

PACKAGE = Path(allranks.__file__).parent
PARTS = {"__init__.py", "errors.py", "py.typed", "version.py", "contract", "hardware", "runtime"}


def uploaded(code: Path, command: str = "python train.py") -> FileList:
    return with_runtime(list_path(code, "here"), command, "step train, key code")


def copy(files: FileList, folder: Path) -> None:
    links = folder.with_name("links")
    copy_links(files.files, links)
    shutil.copytree(links, folder)


def has_runtime(files: FileList) -> bool:
    return "allranks/runtime/__init__.py" in files.files


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("train.py", "from allranks import runtime", True),
        ("train.py", "import allranks.runtime as runtime", True),
        ("train.py", "import os, allranks.hardware.sizes", True),
        ("train.py", "from allranks.errors import InputError", True),
        ("train.py", "import allranks", True),
        ("train.py", "from allranks import InputError", True),
        ("train.py", "def f():\n    from allranks.contract import world\n", True),
        ("part/model.py", "from allranks.runtime import Metrics", True),
        ("train.py", "print 'Python 2'\nimport allranks\n", True),
        ("run.sh", "torchrun -m allranks.runtime train.py\n", True),
        ("train.py", "import torch\n", False),
        ("train.py", "# allranks runs this\nimport torch\n", False),
        ("train.py", "from allranks import run\n", False),
        ("train.py", "from allranks.local import engine\n", False),
        ("train.py", "from .allranks import runtime\n", False),
        ("train.py", "import allranks_extras\n", False),
        ("notes.txt", "import allranks\n", False),
    ],
)
def test_imports_decide(tmp_path: Path, name: str, text: str, expected: bool) -> None:
    write(tmp_path, name, text)
    assert has_runtime(uploaded(tmp_path)) == expected


def packages(files: FileList) -> set[str]:
    return {name.partition("/")[0] for name in files.files if "/" in name}


@pytest.mark.parametrize(
    ("text", "shared", "expected"),
    [
        ("import allranks_steps", "", {"allranks_steps"}),
        ("from allranks_steps.history import History", "", {"allranks_steps"}),
        ("print 'Python 2'\nfrom allranks_steps import history", "", {"allranks_steps"}),
        ("from allranks_steps import history", "from allranks import runtime", {"allranks", "allranks_steps"}),
        ("import allranks_steps_of_ours", "from allranks import runtime", set()),
        ("import allranks.runtime", "", {"allranks"}),
    ],
)
def test_what_the_steps_share_goes_with_the_runtime_that_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, shared: str, expected: set[str]
) -> None:
    write(tmp_path, "package/src/allranks_steps/history.py", shared)
    write(tmp_path, "package/src/allranks_steps/__init__.py", "")
    monkeypatch.setattr(runtime_copy, "steps_parent", lambda: tmp_path / "package/src")
    monkeypatch.setattr(runtime_copy, "_imports_of_step", runtime_copy._imports_of_step.__wrapped__)
    write(tmp_path, "code/train.py", text)
    files = uploaded(tmp_path / "code")
    assert packages(files) == expected
    write(tmp_path, "code/allranks_steps/__init__.py", "")
    own = uploaded(tmp_path / "code").files["allranks_steps/__init__.py"]
    assert own == tmp_path / "code/allranks_steps/__init__.py"


def test_only_the_modules_that_are_imported_are_copied_with_their_data(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "from allranks_steps.charts import sheet\n")
    copied = [name for name in uploaded(tmp_path).files if name.startswith("allranks_steps/")]
    assert {"allranks_steps/__init__.py", "allranks_steps/charts/sheet.py", "allranks_steps/charts/style.css"} <= {
        *copied
    }
    assert not [name for name in copied if name.count("/") > 1 and not name.startswith("allranks_steps/charts/")]


def test_the_shared_package_is_where_an_installation_has_it() -> None:
    assert Path(allranks_steps.__file__).parents[1] == runtime_copy.steps_parent()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python -m allranks.runtime train.py", True),
        ("torchrun --no-python python -m allranks.runtime train.py", True),
        ("python -c 'from allranks import runtime; ...'", True),
        ("python train.py --experiment allranks", False),
    ],
)
def test_a_command_decides(tmp_path: Path, command: str, expected: bool) -> None:
    write(tmp_path, "train.py", "import torch\n")
    assert has_runtime(uploaded(tmp_path, command)) == expected


def test_only_the_training_process_s_part_is_copied_and_works(tmp_path: Path) -> None:
    code = write(tmp_path, "code/train.py", "import allranks.runtime; print(allranks.__file__)").parent
    snapshot = tmp_path / "snapshot"
    copy(uploaded(code), snapshot)
    assert {path.name for path in (snapshot / "allranks").iterdir()} == PARTS
    assert not list(snapshot.rglob("__pycache__"))
    assert list(uploaded(snapshot).files) == list(uploaded(code).files), "a copy gives the same list"
    # Without site-packages' .pth files: the package that is installed is not there.
    paths = [path for path in sys.path if path.endswith("site-packages")]
    program = f"import sys; sys.path[:0] = ['.']; sys.path += {paths}; import runpy; runpy.run_path('train.py')"
    command = [sys.executable, "-I", "-S", "-B", "-c", program]
    ended = subprocess.run(command, cwd=snapshot, capture_output=True, text=True, timeout=120, check=False)
    assert (snapshot / ended.stdout.strip()).samefile(snapshot / "allranks/__init__.py"), ended.stderr


@pytest.mark.parametrize("name", ["allranks/__init__.py", "allranks.py"])
def test_code_keeps_a_package_of_that_name(tmp_path: Path, name: str) -> None:
    write(tmp_path, "train.py", "import allranks\n")
    write(tmp_path, name, "")
    assert set(uploaded(tmp_path).files) == {"train.py", name}


def test_an_ignore_file_that_excludes_a_part_of_it_is_a_problem_with_a_fix_that_helps(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "from allranks import runtime\n")
    write(tmp_path, ".gitignore", "*.csv\nruntime/\n")
    with pytest.raises(InputError) as caught:
        uploaded(tmp_path)
    (problem,) = caught.value.problems
    assert problem.where == "step train, key code"
    assert ".gitignore excludes allranks/hardware/sizes.csv" in problem.found
    line = problem.fix.rpartition(": ")[2]
    write(tmp_path, ".gitignore", f"*.csv\nruntime/\n{line}\n")
    files = uploaded(tmp_path)
    assert has_runtime(files)
    copy(files, tmp_path / "copy")
    assert list(uploaded(tmp_path / "copy").files) == list(files.files)


SPEC = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: train
version: "1"
code: {code}
environment: azureml:any@latest
command: {command}
"""


@pytest.mark.parametrize(
    ("code", "includes", "text", "command", "expected"),
    [
        ("./code", "", "import allranks.runtime", "python train.py", True),
        ("./code", "", "import torch", "python -m allranks.runtime train.py", True),
        ("./code/train.py", "", "import torch", "python -m allranks.runtime train.py", True),
        ("./code", "", "import torch", "python train.py", False),
        ("./code", "[./shared]", "import torch", "python -m allranks.runtime train.py", True),
        ("./code", "[./shared, {package}]", "import allranks", "python train.py", True),
    ],
)
def test_the_sdk_uploads_the_same_list(
    tmp_path: Path, code: str, includes: str, text: str, command: str, expected: bool
) -> None:
    from azure.ai.ml import load_component

    from allranks.sdk.compilation import component_request
    from allranks.sdk.uploads import code_of

    write(tmp_path, "code/train.py", text)
    write(tmp_path, "shared/common.py", "")
    spec = SPEC.format(code=code, command=command)
    spec += f"additional_includes: {includes.format(package=PACKAGE)}\n" if includes else ""
    write(tmp_path, "component.yaml", spec)
    with session():
        component = load_component(tmp_path / "component.yaml")
        request = component_request(component)
        assert request.code is not None
        files = code_of(request.code, request.command, "here")
        assert files is not None
        with component._build_code() as built:
            folder = Path(built.path)
            sent = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    assert sent == set(files.files)
    assert has_runtime(files) == expected


def test_two_steps_with_the_same_code_and_other_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from allranks.plan.reader import read_plan

    monkeypatch.chdir(tmp_path)
    write(tmp_path, "code/train.py", "import torch\n")
    steps = {
        name: {"type": "command", "command": command, "code": "./code", "environment": "azureml:any@latest"}
        for name, command in (("plain", "python train.py"), ("started", "python -m allranks.runtime train.py"))
    }
    write(tmp_path, "pipeline.yml", f"type: pipeline\njobs: {steps}\n")
    plain, started = read_plan("pipeline.yml", {}, tmp_path / "snapshots").graph.nodes
    folders = [Path(step.code.folder) for step in (plain, started)]
    assert [(folder / "allranks").is_dir() for folder in folders] == [False, True]


Resolve = Callable[..., object]


def test_the_sdk_sends_it_with_a_job_by_itself(tmp_path: Path) -> None:
    """A job's code is built where the SDK does not say what the job's command is."""
    from azure.ai.ml import command
    from azure.ai.ml.operations import JobOperations

    write(tmp_path, "train.py", "import torch\n")
    sent: list[set[str]] = []

    def resolver(asset: object, **_: object) -> str:
        folder = Path(asset.path) if hasattr(asset, "_hash_sha256") else None
        if folder:
            sent.append({path.name for path in folder.iterdir()})
        return "azureml:id"

    with session():
        for text in ("python train.py", "python -m allranks.runtime train.py"):
            job = command(code=str(tmp_path), command=text, environment="azureml:any@latest", compute="cpu")._to_job()
            resolve: Resolve = JobOperations._resolve_arm_id_for_command_job
            resolve(object.__new__(JobOperations), job, resolver)
    assert sent == [{"train.py"}, {"train.py", "allranks"}]
