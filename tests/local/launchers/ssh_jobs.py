"""Jobs of three instances whose mpirun reaches them by ssh, run by the command as a given user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from allranks.local.launchers import mpi_ssh

ORDINARY_USER = 12345
"""In no passwd, as in a container that is started with any number for a user."""

JOB = """$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
type: command
code: code
command: python train.py
environment: azureml:any:1
environment_variables: {{OWN: of the job, HF_HUB_OFFLINE: "1", TORCH_EXTENSIONS_DIR: {extensions}}}
distribution: {{type: mpi, process_count_per_instance: {process_count}}}
resources: {{instance_count: 3}}
"""

lacking = mpi_ssh.missing(os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
needs_ssh = pytest.mark.skipif(lacking is not None, reason=lacking.found if lacking else "")


@dataclass(frozen=True)
class User:
    """Who runs a job. folder: the user's own, which every instance sees"""

    number: int
    folder: Path

    def run(self, source: str, process_count: int = 1) -> list[str]:
        """Run a Python program under mpirun, and return the log of each rank."""
        extensions = self.folder / "extensions"
        _copy_extensions(extensions)
        (self.folder / "code").mkdir()
        (self.folder / "code/train.py").write_text(source, encoding="utf-8")
        (self.folder / "job.yaml").write_text(JOB.format(extensions=extensions, process_count=process_count))
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, self.number, -1)
        other = {"user": self.number, "group": self.number, "extra_groups": []} if self.number != os.getuid() else {}
        command = [sys.executable, "-m", "allranks.cli.main", "run", "job.yaml", "--mpi", "ssh", "--instances", "rack"]
        shell = {
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "HF_HOME": "/of/the/shell",
            "HF_HUB_OFFLINE": "1",
        }
        done = subprocess.run(
            [*command, "--no-track"],
            cwd=self.folder,
            env={**os.environ, **shell},
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
            **other,
        )
        logs = [log.read_text() for log in sorted(self.folder.rglob("std_log_process_*.txt"))]
        mpirun = "".join(log.read_text() for log in self.folder.rglob("mpi_log.txt"))
        assert done.returncode == 0, "\n".join([done.stdout, done.stderr, mpirun, *logs])
        return logs


def _copy_extensions(folder: Path) -> None:
    """Copy what DeepSpeed has compiled before the tests. The home of a session by ssh is empty, and an ordinary user
    reads no other home."""
    version = "".join(map(str, sys.version_info[:2]))
    built = Path(os.environ.get("TORCH_EXTENSIONS_DIR") or f"{Path.home()}/.cache/torch_extensions/py{version}_cpu")
    if built.exists():
        shutil.copytree(built, folder, ignore=shutil.ignore_patterns("lock"))
