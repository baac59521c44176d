"""What this machine lacks is found before anything starts."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks.local import engine, machine, missing_modules, requirements
from allranks.local.options import Options
from allranks.plan.environment import Environment
from allranks.plan.graph import Code, Graph, Plan, Step
from allranks.plan.ports import Literal
from allranks.runs.workspace import Workspace


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
    ("text", "changes"),
    [
        ("import json, numpy, allranks\n", {}),
        ("def f():\n    import no_such_package\n", {}),
        ("import no_such_package\n", {"command": "pip install no-such-package && python train.py"}),
        ("import no_such_package\n", {"command": "/opt/other/bin/python train.py"}),
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


def test_an_interpreter_is_not_started_for_modules_that_its_folders_have(tmp_path: Path) -> None:
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\necho '[]'\n")
    python.chmod(0o755)
    own = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    (tmp_path / "lib" / own / "site-packages/made").mkdir(parents=True)
    (tmp_path / "lib" / own / "site-packages/made/__init__.py").touch()
    assert missing_modules.missing(python, {"json", "made", "other"}) == {"other"}


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
        ("einops", "pip install einops"),
    ],
)
def test_the_line_that_installs_a_package(module: str, line: str) -> None:
    assert missing_modules.install(module, Path(sys.executable)) == line


REGISTER = "import mlflow\nmlflow.register_model('runs:/1/model', 'mine')\n"


def test_a_step_that_registers_a_model_needs_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_steps) -> None:
    registers = step(tmp_path / "code", REGISTER)
    with pytest.raises(InputError, match=r"step train uses MLflow's model registry \(train.py:2\)"):
        run_steps(registers, track=False)
    assert not (tmp_path / "workspace").exists()
    plan = Plan("p", Graph((replace(registers, environment_variables={"MLFLOW_TRACKING_URI": "http://own"}),)))
    assert requirements.require(plan, track=False) == ()
    monkeypatch.setattr(machine, "find_spec", lambda _: None)
    assert any("registry (train.py:2)" in text for text in problems(registers))
    assert problems(step(tmp_path / "other", "import json\n")) == []


@pytest.mark.slow
@pytest.mark.mlflow
def test_a_run_that_registers_a_model_is_not_resumed_without_mlflow(
    tmp_path: Path, workspace: Workspace, run_steps
) -> None:
    failed = run_steps(step(tmp_path / "code", REGISTER, "false && python train.py"))
    with pytest.raises(InputError, match="omit --no-track"):
        engine.resume(failed.id, workspace, Options(instances="loopback", track=False))


def test_a_plan_that_is_right_has_no_problems_of_its_own(tmp_path: Path) -> None:
    plan = Plan("p", Graph((step(tmp_path / "code", "import no_such_package\n"),)))
    of_plan, of_machine = requirements.of_plan_and_machine(plan)
    assert (of_plan, len(of_machine)) == ([], 1)
    with pytest.raises(InputError) as raised:
        requirements.require(plan)
    assert list(raised.value.problems) == of_machine


def test_many_steps_with_the_same_code_read_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    original = machine.imports.program
    monkeypatch.setattr(machine.imports, "program", lambda *arguments: read.append(1) or original(*arguments))
    one = step(tmp_path / "code", "import json\n", environment_variables={"A": Literal(1)})
    assert problems(*(replace(one, name=f"s{n}") for n in range(100))) == []
    assert len(read) == 1
