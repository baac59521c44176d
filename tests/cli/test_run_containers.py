"""`allranks run --environment container`: ranks in the root filesystem of an image, which a stand-in for buildah makes
of this machine's shell."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from allranks_command import allranks, called

RUN = ("run", "job.yml", "--environment", "container", "--no-track", "--json")

BUILDER = """#!/bin/sh
# buildah bud ... --output type=tar,dest=FILE CONTEXT | buildah inspect --type image TAG
echo "$*" >> FOLDER/calls
case "$1" in
bud)
    for argument; do case "$argument" in type=tar,dest=*) out=${argument#*dest=};; esac; done
    echo "STEP 1/2: FROM tiny"; echo "STEP 2/2: RUN fill"
    test ! -e FOLDER/broken || { echo "fill: not found"; exit 127; }
    tar -C FOLDER/image -cf "$out" . ;;
inspect) echo '{"OCIv1": {"config": {"Env": ["PATH=/tools:/bin", "OF_IMAGE=yes", "RANK=of the image"]}}}' ;;
esac
"""
PIPELINE = """\
type: pipeline
jobs:
  train:
    type: command
    command: sh ./train.sh ${{inputs.data}} ${{outputs.model}}
    code: code
    inputs: {data: {type: uri_file, path: data.txt}}
    outputs: {model: {type: uri_folder}}
    environment: {build: {path: context}}
    distribution: {type: DISTRIBUTION, process_count_per_instance: 2}
    resources: {instance_count: 2, shm_size: 32m}
"""
TRAIN = """\
read data < $1
read host < /proc/sys/kernel/hostname
cat /etc/hosts > $2/hosts-$RANK
echo changed > /marker-$RANK
echo $RANK > /tmp/of-$RANK
( echo no > $1 ) 2>/dev/null && data=writable
echo $RANK $host $data $OF_IMAGE $PATH $HOME /etc/[a-o]* /marker* /tmp/* /home*
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose image has a shell, `cat`, their libraries, and nothing else."""
    image = tmp_path / "image"
    for name, place in (("sh", "bin"), ("cat", "tools")):
        program = shutil.which(name)
        assert program is not None
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for path in (program, *re.findall(r"/\S+", listed)):
            target = image / place / name if path == program else image / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    (image / "etc").mkdir()
    (image / "etc/hosts").symlink_to("/nowhere/hosts")
    (tmp_path / "builder").mkdir()
    builder = tmp_path / "builder/buildah"
    builder.write_text(BUILDER.replace("FOLDER", str(tmp_path)))
    builder.chmod(0o755)
    monkeypatch.setenv("PATH", f"{builder.parent}:{os.environ['PATH']}")
    for name, content in (
        ("code/train.sh", TRAIN),
        ("context/Dockerfile", "FROM tiny\nRUN fill\n"),
        ("data.txt", "7\n"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "job.yml").write_text(PIPELINE.replace("DISTRIBUTION", "pytorch"))
    return tmp_path


@pytest.mark.slow
def test_ranks_run_in_the_image_with_the_contract_of_their_instance(project: Path) -> None:
    own = str(project / "cache")
    ended = allranks(*RUN, "--force-rerun", folder=project, XDG_CACHE_HOME=own)
    assert ended.code == 0, ended.err
    (step,) = (step for step in ended.json["steps"] if step["name"] == "train")
    logs = [Path(rank["log"]).read_text() for rank in step["ranks"]]
    for rank, log in enumerate(logs):
        first, second = (2 * (rank // 2), 2 * (rank // 2) + 1)
        text = f"{rank} node-{rank // 2} 7 yes /tools:/bin /root /etc/hosts /etc/nsswitch.conf"
        assert log.startswith(text), log
        assert re.search(rf" /marker-({first}|{second})", log), log
        assert f"/tmp/of-{rank}" in log
        assert log.rstrip().endswith("/home*"), log  # nothing of this machine
    model = next(Path(output["path"]) for output in step["outputs"] if output["name"] == "model")
    assert "node-1" in (model / "hosts-0").read_text()
    calls = (project / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls] == ["bud", "inspect"]
    (root,) = Path(own, "allranks/environments").glob("container-*/rootfs")
    assert not list(root.glob("marker*"))

    dry = called(*RUN[:-2], "--dry-run", folder=project, XDG_CACHE_HOME=own)
    assert (dry.code, "rootfs" in dry.out) == (0, True), dry.err
    loopback = called(*RUN, "--instances", "loopback", folder=project, XDG_CACHE_HOME=own)
    assert loopback.code == 2
    assert "step train runs in a container, which instances of the kind loopback do not support" in loopback.err
    (project / "job.yml").write_text(PIPELINE.replace("DISTRIBUTION", "mpi"))
    mpi = called(*RUN, folder=project, XDG_CACHE_HOME=own)
    assert (mpi.code, "mpi, whose launcher allranks does not start in a container" in mpi.err) == (2, True), mpi.err
    (project / "broken").touch()
    (project / "context/Dockerfile").write_text("FROM tiny\n\nRUN fill\n")
    broken = called(*RUN, folder=project, XDG_CACHE_HOME=own)
    assert broken.code == 2
    for text in ("context/Dockerfile:3)", "its image cannot be built:", "fill: not found"):
        assert text in broken.err, broken.err
    assert len(list(Path(own, "allranks/environments").glob("container-*/"))) == 1
    assert json.loads(ended.out)["status"] == "Completed"
