"""The Python programs that a command starts."""

import pytest

from allranks.contract.commands import Start, starts

TRAIN = Start("python", "train.py")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python train.py --lr ${{ inputs.lr }} $[[--data ${{inputs.data}}]]", [TRAIN]),
        ("python -u -W ignore train.py", [TRAIN]),
        ("TF_CPP_MIN_LOG_LEVEL=1 exec python train.py 2>&1 | tee log.txt", [TRAIN]),
        ("mkdir -p out && python train.py; python3 after.py", [TRAIN, Start("python3", "after.py")]),
        ("set -e\npython train.py \\\n  --lr 1\npython after.py", [TRAIN, Start("python", "after.py")]),
        ("PYTHONPATH=src:lib python train.py", [Start("python", "train.py", python_path=("src", "lib"))]),
        ("python -m training.main --x 1", [Start("python", module="training.main")]),
        ("python -m allranks.runtime train.py", [Start("python", "train.py", "allranks.runtime")]),
        ("torchrun --nproc-per-node 2 train.py --x a.py", [Start("torchrun", "train.py", "torch.distributed.run")]),
        (
            "mldesigner execute --source component.py --name prepare --inputs x='${{inputs.x}}'",
            [Start("mldesigner", "component.py", "mldesigner", "prepare")],
        ),
        ("cp a b", []),
        ("python -c 'import numpy'", []),
        ("python - <<END\nimport torch\nEND", []),
        ("bash train.sh", []),
        ("echo 'not closed", []),
        # What is found after these depends on what they do.
        ("pip install tokenizers && python train.py", []),
        ("python -m pip install tokenizers && python train.py", []),
        ("source .venv/bin/activate && python train.py", []),
        ("cd ${{inputs.code}} && python train.py", []),
        ("cd $WHERE && python train.py", []),
        ("(cd src && make); python train.py", []),
        ("if [ -d src ]; then cd src; fi; python train.py", []),
        ("export PYTHONPATH=$WHERE; python train.py", []),
        ("export PYTHONPATH=$(pwd); python train.py", []),
        ("PYTHONPATH=$WHERE/src python train.py", []),
        # What these change is written in them.
        ("cd src/jobs && cd .. && python train.py", [Start("python", "train.py", folder="src")]),
        ("export PYTHONPATH=src; python train.py", [Start("python", "train.py", python_path=("src",))]),
        (
            "export PYTHONPATH=src; export PYTHONPATH; python train.py",
            [Start("python", "train.py", python_path=("src",))],
        ),
        (
            "export A=1 PYTHONPATH=src:$PYTHONPATH && PYTHONPATH=lib:${PYTHONPATH} python train.py",
            [Start("python", "train.py", python_path=("lib", "src"))],
        ),
        ("mpirun -np 4 --allow-run-as-root python3 train.py --x 1", [Start("python3", "train.py")]),
    ],
)
def test_the_programs_of_a_command(command: str, expected: list[Start]) -> None:
    assert list(starts(command)) == expected
