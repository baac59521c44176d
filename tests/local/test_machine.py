"""What this machine lacks is found before anything starts."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.contract.commands import Start
from allranks.local import machine, missing_modules
from allranks.plan.environment import Environment
from allranks.plan.graph import Code, Graph, Parallel, Plan, Step
from allranks.plan.ports import Literal


def step(folder: Path, text: str, command: str = "python train.py", **changes: object) -> Step:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(text)
    return Step("train", command, code=Code(str(folder), f"{folder}{text}"), **changes)  # type: ignore[arg-type]


def problems(*steps: Step) -> list[str]:
    return [str(problem) for problem in machine.problems(Plan("p", Graph(steps)))]


def test_a_package_that_no_interpreter_has_is_named_once_for_all_steps(tmp_path: Path) -> None:
    one = step(tmp_path / "code", "import json\nimport no_such_package\n")
    (problem,) = problems(one, replace(one, name="again"))
    assert "this machine, for steps train, again" in problem
    assert "no Python package no_such_package, which train.py:2 needs" in problem
    assert "pip install no_such_package" in problem


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("julia train.jl", "no program julia"),
        ("set -e; A=1 papermill a.ipynb b.ipynb", "no program papermill"),
        ("apt-get install julia && julia train.jl", ""),
        ("echo julia", ""),
        ("no-such-program", ""),
        ("/opt/none/torchrun --nproc-per-node 2 train.py", "no program /opt/none/torchrun"),
        ("/opt/none/python -m torch.distributed.run train.py", "no program /opt/none/python"),
        ("deepspeed train.py", "no program deepspeed"),
    ],
)
def test_a_program_that_this_machine_lacks(
    tmp_path: Path, command: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "python").touch(0o755)
    own = Environment(interpreter=str(tmp_path / "python"))
    lacking = machine.problems(Plan("p", Graph((Step("train", command, environment=own),))))
    assert [each.found.partition(",")[0] for each in lacking] == [found][: bool(found)]
    assert all(each.fix and each.code == "missing-program" for each in lacking)


@pytest.mark.parametrize(
    ("version", "name", "parallel", "found"),
    [
        ("3.9.18", "allranks/runtime", False, "Python 3.9.18, with allranks/runtime in its code"),
        ("3.7.16", "allranks_steps", False, "Python 3.7.16, with allranks_steps in its code"),
        ("3.6.15", "lib", True, "Python 3.6.15, with the program of a parallel step"),
        ("3.10.13", "allranks/runtime", False, ""),
        ("3.7.16", "lib", True, ""),
        ("3.6.15", "lib", False, ""),
    ],
)
def test_a_python_that_is_too_old_for_what_runs_in_it(
    tmp_path: Path, version: str, name: str, parallel: bool, found: str
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    (tmp_path / "pyvenv.cfg").write_text(f"version = {version}\n")
    (tmp_path / "code" / name).mkdir(parents=True)
    environment = Environment("old", interpreter=str(tmp_path / "bin/python"))
    settings = Parallel("train.py", "") if parallel else None
    listed = problems(step(tmp_path / "code", "", environment=environment, parallel=settings))
    assert [found in text for text in listed] == [True] * bool(found)


FILES = ("src/jobs/clean.py", "src/helpers.py", "pp/utilities.py", "pp/tools/run.py", "data/rows/all.csv")
IMPORTS = {"src/jobs/clean.py": "from src.helpers import shout\n", "pp/tools/run.py": "import utilities\n"}
RUN = "start it with python -m src.jobs.clean"


@pytest.mark.parametrize(
    ("command", "place", "fix"),
    [
        ("python src/jobs/clean.py", "src, where", f"{RUN}, or write PYTHONPATH=. in front"),
        (
            "cd src/jobs && python clean.py",
            "src, where",
            "start it without cd, with python -m src.jobs.clean, or write PYTHONPATH=../..",
        ),
        ("PYTHONPATH=lib python src/jobs/clean.py", "src, where", RUN),
        ("export PYTHONPATH=src && python src/jobs/clean.py", "src, where", RUN),
        ("mpirun -n 2 python src/jobs/clean.py", "src, where", RUN),
        ("python -m jobs.clean", "src/jobs, where", "start it with python -m src.jobs.clean, or write PYTHONPATH=src"),
        ("python pp/tools/run.py", "pp/utilities.py", "write PYTHONPATH=pp in front"),
        ("python -m rows", "data/rows, without a Python file", "correct the import"),
    ],
)
def test_a_module_in_the_code_is_never_to_be_installed(tmp_path: Path, command: str, place: str, fix: str) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(IMPORTS.get(name, ""))
    (problem,) = machine.problems(Plan("p", Graph((Step("train", command, code=Code(str(tmp_path), f"{tmp_path}")),))))
    assert f"it is in the code, at {place}" in problem.found
    assert fix in problem.fix
    assert "pip install" not in str(problem)
    assert problem.code == "module-in-code"


@pytest.mark.parametrize(
    "command",
    [
        "python -m src.jobs.clean",
        "PYTHONPATH=. python src/jobs/clean.py",
        "cd src && PYTHONPATH=.. python jobs/clean.py",
    ],
)
def test_a_module_in_the_code_that_python_finds(tmp_path: Path, command: str) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(IMPORTS.get(name, ""))
    assert problems(Step("train", command, code=Code(str(tmp_path), f"{tmp_path}"))) == []


@pytest.mark.parametrize(
    ("source", "place", "fix"),
    [
        ("src", "{top}/src itself", "set code to {top}, and start the script from there"),
        ("src/jobs", "{top}/src itself", "set code to {top}"),
    ],
)
def test_a_module_around_the_code(tmp_path: Path, source: str, place: str, fix: str) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(IMPORTS.get(name, ""))
    script = "clean.py" if source == "src/jobs" else "jobs/clean.py"
    code = Code(str(tmp_path / source), f"{tmp_path}{source}", source=str(tmp_path / source))
    (problem,) = machine.problems(Plan("p", Graph((Step("train", f"python {script}", code=code),))))
    assert place.format(top=tmp_path) in problem.found
    assert fix.format(top=tmp_path) in problem.fix


@pytest.mark.parametrize(
    ("name", "said", "expected"),
    [
        ("src", "", "src is in the code, at src, where Python does not look: start it with python -m src.jobs.clean"),
        ("src.other", "", "src is in the code, at src, and has no module other: correct the import"),
        ("numpy.old", "", "numpy is installed, and has no module old: correct the import, or use a version"),
        ("data", "", "data is in the code, at data, without a Python file"),
        ("helpers.x", "'helpers' is not a package", "helpers is a file, helpers.py, which hides the package"),
        ("azureml", "", "pip install azureml-core"),
        ("azureml.mlflow", "", "pip install azureml-mlflow"),
        ("deepspeed", "", 'the Python of this step has no deepspeed; to get it: pip install "allranks[deepspeed]"'),
        ("einops_x", "", "the Python of this step has no einops_x"),
    ],
)
def test_why_a_module_is_not_found(tmp_path: Path, name: str, said: str, expected: str) -> None:
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    start = Start("python", "src/jobs/clean.py")
    code, text = missing_modules.explain(name, said, Code(str(tmp_path), ""), start, Path(sys.executable))
    assert expected in text
    assert (code == "module-in-code") is ("in the code" in text or "is a file" in text)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("import json, numpy, allranks\n", {}),
        ("def f():\n    import no_such_package\n", {}),
        ("import no_such_package\n", {"command": "pip install no-such-package && python train.py"}),
        ("import no_such_package\n", {"command": f"{Path(sys.executable).resolve()} train.py"}),
        ("import no_such_package\n", {"environment_variables": {"PYTHONPATH": "lib"}}),
        ("import sys\nsys.path.append('/opt/modules')\nimport no_such_package\n", {}),
    ],
    ids=["there", "in a function", "installed by the command", "another Python", "on PYTHONPATH", "a changed path"],
)
def test_what_may_be_there_is_not_reported(tmp_path: Path, text: str, changes: dict[str, object]) -> None:
    (tmp_path / "code/lib").mkdir(parents=True)
    (tmp_path / "code/lib/no_such_package.py").touch()
    assert problems(step(tmp_path / "code", text, **changes)) == []  # type: ignore[arg-type]


def test_another_interpreter_answers_for_itself(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\necho >> {asked}\nexec {sys.executable} -S -I "$@"\n')
    python.chmod(0o755)
    own = Environment(interpreter=str(python))
    steps = [step(tmp_path / str(n), f"import json\nimport numpy\nimport m{n}\n", environment=own) for n in range(3)]
    found = problems(*(replace(one, name=f"s{n}") for n, one in enumerate(steps)))
    assert [text.count(f"{python} -m pip install") for text in found] == [1] * 4
    assert "for steps s0, s1, s2" in found[0]
    assert len(asked.read_text()) == 1
    assert missing_modules.missing(python, {"json"}) == set()
    assert len(asked.read_text()) == 1


def test_an_interpreter_that_does_not_answer_is_taken_to_have_everything(tmp_path: Path) -> None:
    assert missing_modules.missing(tmp_path / "python", {"numpy"}) == set()


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("tokenizers", 'pip install "allranks[text]"'),
        ("lightgbm", 'pip install "allranks[gradient-boosting]"'),
        ("sklearn", "pip install scikit-learn"),  # several extras bring it
        ("deepspeed", 'pip install "allranks[deepspeed]"'),
        ("cv2", "pip install opencv-python"),
        ("azureml", "pip install azureml-core"),
        ("azureml.core.run", "pip install azureml-core"),
        ("azure.storage.blob.aio", "pip install azure-storage-blob"),
        ("einops", "pip install einops"),
    ],
)
def test_the_line_that_installs_a_package(module: str, line: str) -> None:
    assert missing_modules.install(module, Path(sys.executable)) == line


def test_many_steps_with_the_same_code_read_it_once(tmp_path: Path) -> None:
    before = machine.script_imports.program.cache_info().misses
    one = step(tmp_path / "code", "import json\n", environment_variables={"A": Literal(1)})
    assert problems(*(replace(one, name=f"s{n}") for n in range(100))) == []
    assert machine.script_imports.program.cache_info().misses == before + 1
