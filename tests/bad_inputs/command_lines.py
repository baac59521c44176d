"""Options, arguments and commands that do not exist, and wrong values for those that do."""

from bad_inputs.python_files import RIGHT
from bad_inputs.row import Row, job


def _run(options: str, *said: str) -> Row:
    return Row(f"run job.yml {options}", said, files={"job.yml": job()})


SCRIPT = {"train.py": ""}


def _launch(options: str, *said: str) -> Row:
    return Row(f"launch {options} train.py", said, files=SCRIPT)


ROWS = {
    "nothing to launch": Row("launch", ("no script", "allranks launch -j 2x4 train.py")),
    "a script to launch that is gone": Row("launch trian.py", ("no such file", "train.py"), files=SCRIPT),
    "a folder to launch": Row("launch src", ("src", "it is a folder", "train.py"), files={"src/train.py": ""}),
    "a script that its code lacks": Row("launch --code src train.py", ("src/train.py",), files=SCRIPT | {"src/a": ""}),
    "a layout that is none": _launch("-j 4x", "-j 4x", "2x4"),
    "a launcher that contradicts the layout": Row(
        "launch -j 2x2 torchrun --nproc-per-node 4 train.py", ("--nproc-per-node 4", "-j 2x2"), files=SCRIPT
    ),
    "a launch of an unknown distribution": _launch("--distribution nccl", "--distribution nccl", "pytorch, mpi"),
    "a launch on data that is gone": _launch("--input data=gone", "--input data=gone", "no such folder"),
    "an input without a path": _launch("--input data", "--input data", "NAME=PATH", "data=VALUE"),
    "a launch that overwrites a file": Row(
        "launch --emit job.yml train.py", ("--emit job.yml", "the file exists"), files=SCRIPT | {"job.yml": ""}
    ),
    "a format that does not exist": Row(
        "check job.yml --format xml", ("--format", "'xml' is not", "'sarif', 'github'")
    ),
    "two formats": Row("check job.yml --json --format sarif", ("--json", "--format sarif is given too", "one of them")),
    "an unknown command": Row("rnu", ("No such command", "rnu")),
    "no file": Row("run", ("Missing argument", "FILE")),
    "a dry run of a value out of range": Row(
        "run right.py --set data=data.csv --set lr=2 --dry-run --json", ("key inputs.lr", "at most 1"), files=RIGHT
    ),
    "an unknown option": _run("--quick", "No such option", "--quick", "allranks run --help"),
    "an empty file name": Row("run ''", ("it is a folder",)),
    "no slots": _run("--slots 0", "--slots", "found '0'", "at least 1"),
    "other instances": _run("--instances cloud", "--instances", "cloud", "rack", "loopback"),
    "a workspace that is a file": _run(
        "--folder job.yml", "job.yml", "it cannot become a workspace: Not a directory", "--folder DIR"
    ),
    "a workspace with a long name": _run("--folder " + "x" * 300, "File name too long", "--folder DIR"),
    "no runs to list": Row("runs --limit 0", ("--limit", "'0'", "at least 1")),
    "an age of no unit": Row("clean --older-than 30", ("--older-than 30", "m, h, d or w", "--older-than 30d")),
    "firings below 1": Row("schedules next 0", ("found 0", "expected a number of firings")),
    "a webhook of another scheme": Row(
        "schedules run --notify ftp://host/x", ("--notify", "ftp://host/x", "http://HOST")
    ),
    "schedules that are gone": Row("schedules next 3 gone.py", ("gone.py", "there is no such file or folder")),
    "--set for a component": Row(
        "check component.yaml --set a=1",
        ("--set", "is not a pipeline"),
        files={"component.yaml": "$schema: commandComponent.schema.json\nname: a\ntype: command\n"},
    ),
    "a tag without a value": Row(
        "submit right.py --dry-run --set data=data.csv --tag x", ("--tag x", "KEY=VALUE"), files=RIGHT
    ),
}
