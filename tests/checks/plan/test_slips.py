"""Slips that can be seen in the text of a step: each is found at its place, and what is right is left alone."""

import json
from pathlib import Path

import pytest

from allranks.checks.plan import findings
from allranks.contract.launch import Distribution
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.single import Single
from allranks.errors import Level, Problem
from allranks.plan.environment import Environment
from allranks.plan.graph import Code, Graph, Plan, Step

RULES = ("conda-dependencies", "option-line", "line-ends", "rank-variable", "mpi-variable")


def found(*steps: Step) -> list[Problem]:
    return [problem for problem in findings(Plan("p", Graph(steps))).found if problem.rule in RULES]


def code(folder: Path, files: dict[str, str]) -> Code:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    return Code(str(folder), "digest")


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("python t.py\n  --lr 1\n  --epochs 2\n", "--lr"),
        ("python t.py\n  $[[--lr ${{inputs.lr}}]]\n", "--lr"),
        ("python t.py \\ \n  --lr 1", "--lr"),
        ("python t.py --lr 1 --epochs 2", ""),
        ("python t.py \\\n  --lr 1", ""),
        ("echo 'a\n--lr' && python t.py", ""),
        ("cat <<END\n--lr\nEND", ""),
    ],
)
def test_a_line_that_begins_with_an_option(command: str, option: str) -> None:
    problems = found(Step("train", command))
    assert [(each.rule, each.level, each.found) for each in problems] == (
        [("option-line", Level.ERROR, f"a line that begins with {option}")] if option else []
    )
    assert all(each.where == "step train, key command" and ">-" in each.fix for each in problems)


@pytest.mark.parametrize(
    ("command", "files", "name"),
    [
        ("bash run.sh", {"run.sh": "set -e\r\npython t.py\r\n"}, "run.sh"),
        ("source tools/env && python t.py", {"tools/env": "A=1\r\n"}, "tools/env"),
        ("./run.py", {"run.py": "#!/usr/bin/env python\r\nprint(1)\r\n"}, "./run.py"),
        ("sh run.sh", {"run.sh": ". ./lib.sh\npython t.py\n", "lib.sh": "A=1\r\n"}, "./lib.sh"),
        ("python run.py", {"run.py": "#!/usr/bin/env python\r\nprint(1)\r\n"}, ""),
        ("./run.py", {"run.py": "#!/usr/bin/env python\nprint(1)\r\n"}, ""),
        ("bash run.sh", {"run.sh": "set -e\n", "other.sh": "\r\n"}, ""),
    ],
)
def test_line_ends_of_windows(tmp_path: Path, command: str, files: dict[str, str], name: str) -> None:
    problems = found(Step("train", command, code=code(tmp_path, files)))
    assert [each.rule for each in problems] == ["line-ends"] * bool(name)
    assert all(each.found.startswith(f"{name},") and f"sed -i 's/\\r$//' {name}" in each.fix for each in problems)


@pytest.mark.parametrize(
    ("distribution", "count", "variables", "command", "keys"),
    [
        (PyTorch(2), 2, {"MASTER_ADDR": "localhost", "RANK": "0"}, "python t.py", ["RANK", "MASTER_ADDR"]),
        (PyTorch(2), 1, {}, "export LOCAL_RANK=0; MASTER_PORT=29500 python t.py", ["command", "command"]),
        (Mpi(2), 2, {"WORLD_SIZE": "2", "MASTER_PORT": "29500"}, "python t.py", ["WORLD_SIZE"]),
        (PyTorch(2), 2, {"WORLD_SIZE": "4"}, "python t.py", []),
        (PyTorch(1), 1, {"MASTER_PORT": "29500"}, "torchrun --master-port $MASTER_PORT t.py", []),
        (Mpi(2), 2, {}, "RANK=$OMPI_COMM_WORLD_RANK python t.py", []),
        (PyTorch(2), 2, {}, "export RANK; echo RANK=0", []),
        (Single(), 1, {"RANK": "0", "WORLD_SIZE": "1"}, "python t.py", []),
    ],
)
def test_a_variable_of_a_rank_with_one_value(
    distribution: Distribution, count: int, variables: dict[str, str], command: str, keys: list[str]
) -> None:
    step = Step("train", command, distribution=distribution, instance_count=count, environment_variables=variables)
    problems = [each for each in found(step) if each.rule == "rank-variable"]
    assert [each.where.rpartition(".")[2].removeprefix("step train, key ") for each in problems] == keys


@pytest.mark.parametrize(
    ("files", "processes", "is_wrong"),
    [
        ({"run.sh": "export NODE_RANK=$OMPI_COMM_WORLD_RANK\n"}, 2, True),
        ({"t.py": 'os.environ["NODE_RANK"] = os.environ["OMPI_COMM_WORLD_RANK"]\n'}, 2, True),
        ({"t.py": "os.environ['NODE_RANK'] = str(os.environ.get('OMPI_COMM_WORLD_RANK', 0))\n"}, 4, True),
        ({"t.py": 'os.environ["NODE_RANK"] = os.environ["OMPI_COMM_WORLD_RANK"]\n'}, 1, False),
        ({"t.py": 'rank = os.environ["OMPI_COMM_WORLD_RANK"]\n'}, 2, False),
    ],
)
def test_the_rank_of_a_process_as_that_of_its_instance(
    tmp_path: Path, files: dict[str, str], processes: int, is_wrong: bool
) -> None:
    (name,) = files
    command = f"{'bash' if name.endswith('.sh') else 'python'} {name}"
    step = Step("train", command, code=code(tmp_path, files), distribution=Mpi(processes), instance_count=2)
    problems = found(step)
    assert [each.rule for each in problems] == ["mpi-variable"] * is_wrong
    assert all(f"in {name}" in each.found and f"/ {processes}" in each.fix for each in problems)


@pytest.mark.parametrize(
    ("specification", "problem"),
    [
        (
            {
                "dependencies": [
                    "python=3.11",
                    "pip",
                    {"pip": ["numpy==1.2", "-r more.txt", "./lib", "a @ https://x/a.whl"]},
                ]
            },
            "",
        ),
        ({"dependencies": {"python": 3.1}}, "conda.yml:2: dependencies {'python': 3.1}"),
        ({"dependencies": [{"pip": "numpy"}]}, "conda.yml:3: dependency {'pip': 'numpy'}"),
        ({"dependencies": [{"pip": ["pandas>=1.0<2"]}]}, "conda.yml:4: pandas>=1.0<2, which pip does not read"),
        ({"dependencies": [{"pip": ["sklearn==0.24"]}]}, "conda.yml: sklearn==0.24, a name that installs nothing"),
        ({"dependencies": ["pip"], "channels": "conda-forge"}, "conda.yml:1: channels 'conda-forge'"),
        ({"dependencies": [{"pip": ["-r worse.txt"]}]}, "worse.txt:1: a b c, which pip does not read"),
        ("numpy pandas", "conda.yml: a text or a list, and no conda specification"),
    ],
)
def test_a_conda_file_is_read_as_by_the_environment_venv(tmp_path: Path, specification: object, problem: str) -> None:
    file = tmp_path / "conda.yml"
    file.write_text("channels: x\ndependencies:\n- pip: numpy\n  - pandas>=1.0<2\n")
    (tmp_path / "worse.txt").write_text("a b c\n")
    (tmp_path / "more.txt").write_text("six  # a comment\nidna==3 --hash=sha256:1 \\\n  --hash=sha256:2\n")
    (tmp_path / "lib").mkdir()
    environment = Environment(image="i:1", definition=json.dumps(specification), file=str(file))
    problems = found(Step("train", "true", environment=environment))
    assert [each.rule for each in problems] == ["conda-dependencies"] * bool(problem)
    assert all(problem in each.found and each.fix for each in problems)
