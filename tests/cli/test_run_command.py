"""`allranks run`, for each kind of file that it takes."""

import fcntl
import json
import os
import pty
import struct
import termios
from pathlib import Path

import pytest

import bounded
from allranks_command import called, environment, words, write, write_job

CHAIN = """\
    from azure.ai.ml import Input, Output, command, dsl

    print("printed while the file is read")

    prepare = command(
        name="prepare",
        command="echo preparing; echo ${{inputs.text}} > ${{outputs.data}}",
        environment="azureml:cpu:1",
        inputs={"text": Input(type="string")},
        outputs={"data": Output(type="uri_file")},
    )
    train = command(
        name="train",
        command='[ "$HF_TOKEN" = hunter2 ] && echo $RANK of $WORLD_SIZE at $(cat ${{inputs.data}})',
        environment="azureml:cpu:1",
        inputs={"data": Input(type="uri_file")},
        distribution={"type": "pytorch", "process_count_per_instance": 2},
        instance_count=2,
        environment_variables={"HF_TOKEN": "hunter2"},
    )


    @dsl.pipeline()
    def chain(text: str = "hello"):
        prepare_step = prepare(text=text)
        train_step = train(data=prepare_step.outputs.data)
        return {"data": prepare_step.outputs.data}


    @dsl.pipeline()
    def alone(text: str = "hello"):
        prepare_step = prepare(text=text)
"""

PIPELINE = """\
    type: pipeline
    display_name: Two steps
    inputs:
      text: hello
    jobs:
      say:
        type: command
        command: echo ${{inputs.text}} > ${{outputs.said}}
        environment: azureml:cpu:1
        inputs: {text: "${{parent.inputs.text}}"}
        outputs: {said: {type: uri_file}}
      read:
        type: command
        command: cat ${{inputs.said}}
        environment: azureml:cpu:1
        inputs: {said: "${{parent.jobs.say.outputs.said}}"}
"""


def logs(record: dict[str, object], step: str) -> list[str]:
    """What each rank of a step wrote."""
    (found,) = (one for one in record["steps"] if one["name"] == step)
    return [Path(rank["log"]).read_text() for rank in found["ranks"]]


@pytest.mark.slow
def test_a_python_file_runs_and_runs_again(tmp_path: Path) -> None:
    write(tmp_path, "chain.py", CHAIN)
    first = called("run", "chain.py:chain", "--set", "text=good day", folder=tmp_path)
    assert first.code == 0
    assert first.err == "printed while the file is read\n"
    assert "\x1b" not in first.out
    *lines, page = first.out.strip().splitlines()
    assert any("train_step    Running      pytorch 2 x 2" in line for line in lines)
    assert any("chain completed in" in line for line in lines)
    assert Path(page.split()[-1]).name == "run.html"
    assert (tmp_path / page.split()[-1]).parent.parent == tmp_path / ".allranks" / "runs"

    second = called("run", "chain.py:chain", "--set", "text=good day", "--json", folder=tmp_path)
    record = second.json
    assert (second.code, record["status"], record["inputs"]) == (0, "Completed", {"text": "good day"})
    assert [step["reused_from"] for step in record["steps"]] == [Path(page.split()[-1]).parent.name] * 2
    assert Path(record["outputs"]["data"]).read_text() == "good day\n"
    assert "prepare_step  note         reused from run" in second.err
    assert "2 of 2 steps reused" in second.err

    third = called("run", "chain.py:chain", "--set", "text=good day", "--force-rerun", "--json", folder=tmp_path)
    assert [step["reused_from"] for step in third.json["steps"]] == [None, None]
    assert logs(third.json, "train_step") == [f"{rank} of 4 at good day\n" for rank in range(4)]

    listed = called("runs", "--json", folder=tmp_path)
    assert [run["id"] for run in listed.json] == [third.json["id"], record["id"], record["steps"][0]["reused_from"]]
    shown = [called("show", *options, folder=tmp_path) for options in ((), ("--json",))]
    written = [path.read_text() for path in (tmp_path / ".allranks").rglob("run.html")]
    assert len(written) == 3
    assert not [text for text in (first.out, second.out, *(one.out for one in shown), *written) if "hunter2" in text]


def test_the_function_after_the_colon_is_the_one_that_runs(tmp_path: Path) -> None:
    write(tmp_path, "chain.py", CHAIN)
    done = called("run", "chain.py:alone", "--json", "--instances", "loopback", folder=tmp_path)
    assert [step["name"] for step in done.json["steps"]] == ["prepare_step"]
    assert done.json["instances"] == "loopback"


def test_a_pipeline_in_yaml_runs_from_another_folder(tmp_path: Path) -> None:
    file = write(tmp_path, "files/pipeline.yml", PIPELINE)
    here = tmp_path / "elsewhere"
    here.mkdir()
    done = called("run", file, "--set", "text=adieu", "--folder", "mine", "--json", folder=here)
    assert done.code == 0
    assert done.json["display_name"] == "Two steps"
    assert logs(done.json, "read") == ["adieu\n"]
    assert [path.name for path in here.iterdir()] == ["mine"]
    assert [path.name for path in file.parent.iterdir()] == ["pipeline.yml"]


def test_a_command_job_runs_with_retries_and_slots(tmp_path: Path) -> None:
    write_job(
        tmp_path,
        "echo $RANK ${{inputs.n}}; [ -e ${{outputs.out}}/tried ] || { touch ${{outputs.out}}/tried; exit 5; }",
        inputs={"n": 3},
        outputs={"out": {"type": "uri_folder"}},
        distribution={"type": "pytorch", "process_count_per_instance": 2},
    )
    done = called("run", "job.yml", "--set", "n=7", "--retries", 1, "--slots", 1, "--json", folder=tmp_path)
    (step,) = done.json["steps"]
    assert (done.code, step["status"], step["attempt"]) == (0, "Completed", 1)
    assert "failed, retrying (0 retries left)" in done.err or "1 retry left" in done.err
    assert [log.split() for log in logs(done.json, "job")] == [["0", "7"], ["1", "7"]]
    tries = [json.dumps(rank["log"]) for rank in step["ranks"]]
    assert all("retry_001" in log for log in tries)


def test_a_terminal_gets_a_tree_that_is_drawn_in_place_and_then_the_summary(tmp_path: Path) -> None:
    write(tmp_path, "pipeline.yml", PIPELINE)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    arguments = words("run", "pipeline.yml")
    variables = environment()
    del variables["COLUMNS"]
    with bounded.Popen(arguments, cwd=tmp_path, env=variables, stdin=theirs, stdout=theirs, stderr=theirs) as run:
        os.close(theirs)
        screen = read_all(ours)
    os.close(ours)
    assert run.returncode == 0
    hide, show = screen.index("\x1b[?25l"), screen.rindex("\x1b[?25h")
    live, final = screen[hide:show], screen[show:]
    assert "Ctrl-C stops the run" in live
    assert "\x1b[1A\x1b[2K" in live  # what is drawn again is first taken away
    assert "Ctrl-C" not in final
    assert "├──" in final
    assert "└──" in final
    assert "Two steps completed in" in final
    assert "run.html" in final.splitlines()[-1]


def read_all(terminal: int) -> str:
    found = b""
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # Linux says that the other end is closed with EIO
            part = b""
        if not part:
            return found.decode()
        found += part


@pytest.mark.slow
def test_a_failing_rank_is_named_with_its_log_and_what_to_do_next(tmp_path: Path) -> None:
    write_job(
        tmp_path,
        "echo line $RANK; [ $RANK = 3 ] && { echo broken >&2; exit 7; }; exec sleep 1000",
        "broken.yml",
        distribution={"type": "pytorch", "process_count_per_instance": 2},
        resources={"instance_count": 2},
    )
    done = called("run", "broken.yml", folder=tmp_path)
    run = called("runs", "--json", folder=tmp_path).json[0]
    assert done.code == 1
    assert "Traceback" not in done.err
    lines = done.out.splitlines()
    for expected in (
        "  broken: rank 3 on instance 1 ended with exit code 7",
        "  │ line 3",
        "  │ broken",
        f"  the whole log  allranks logs {run['id']} broken --rank 3",
        f"  resume with the same code    allranks resume {run['id']}",
    ):
        assert expected in lines
    assert done.out.count("exit code 7") == 2  # when it happened and at the end, once each
    log = called("logs", run["id"], "broken", "--rank", 3, folder=tmp_path)
    assert (log.code, log.out) == (0, "line 3\nbroken\n")
    (step,) = run["steps"]
    assert [rank["status"] for rank in step["ranks"]] == ["Canceled"] * 3 + ["Failed"]
