"""The Python of docs/how-to/checkpoints.md runs as it stands: a training resumes, and torch reads its checkpoints."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/how-to/checkpoints.md"

pytestmark = pytest.mark.slow


def snippet(text: str) -> str:
    """Return the Python on the page that has a text in it."""
    found: list[str] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (one,) = (each for each in found if text in each)
    return one


@pytest.mark.recipe
def test_it_saves_and_resumes(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(snippet("runtime.main(train)"))

    def run() -> subprocess.CompletedProcess[str]:
        environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [sys.executable, "train.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    first, again = run(), run()
    assert (first.returncode, first.stdout) == (0, "step 100\n"), first
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step_000000080", "step_000000100"]
    assert again.returncode == 0, again
    assert "resuming from step 100" in again.stderr


STRATEGIES = ["ddp", "fsdp", *(f"zero{stage}" for stage in (1, 2, 3) if find_spec("deepspeed"))]
STRATEGIES += ["horovod"] if find_spec("horovod") else []


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkpoint that two ranks saved under each strategy, and the weights that they had."""
    folder = tmp_path_factory.mktemp("saved")
    script = ROOT / "tests/runtime/scripts/save_each.py"
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [*launch, str(script), str(folder), *STRATEGIES]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250, check=False)
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.mark.recipe
@pytest.mark.xdist_group("saved")
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_torch_alone_reads_a_checkpoint_of_each_strategy(
    saved: Path, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved / strategy)
    code = snippet("checkpoint.load(")
    assert "allranks" not in code
    assert len(code.splitlines()) <= 10
    names: dict[str, Any] = {}
    exec(code, names)
    torch.testing.assert_close(dict(names["model"].state_dict()), torch.load("weights.pt"), rtol=0, atol=0)


@pytest.mark.recipe
@pytest.mark.xdist_group("saved")
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_torchs_converter_writes_one_file(saved: Path, tmp_path: Path) -> None:
    dcp_to_torch_save(saved / "fsdp/checkpoints/step_000000100", tmp_path / "checkpoint.pt")
    found = torch.load(tmp_path / "checkpoint.pt", weights_only=False)
    torch.testing.assert_close(found["training"]["model"], torch.load(saved / "fsdp/weights.pt"), rtol=0, atol=0)
