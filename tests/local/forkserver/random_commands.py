"""Random commands of a shell, run twice: with the Python programs in them executed, and forked from a fork server.

    python tests/local/forkserver/random_commands.py [--count 500] [--seed 1] [--kind rack]

It prints each command whose output, exit code, environment, open files or written files differ. What a script sees of
itself is printed by SHOW. Process ids, parents, sessions and process groups are the differences that
docs/explanation/starting-ranks.md names.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import shlex
import shutil
import signal as signals
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from allranks.local.boot import SOURCE
from allranks.local.forkserver import shims
from allranks.local.instances.supervisor import INSTANCE_KINDS, Event, ForkServerSpec, InstanceSpec, Program, Supervisor

BOUND = 120
AT_ONCE = 4
"""Commands that run at the same time."""

AGAIN = 3
"""How often a command runs again that has not ended the same."""

ENVIRONMENT = {
    "PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/bin", "/bin"]),
    "HOME": "/",
    "LANG": "C.UTF-8",
    "A": "given",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}

SHOW = """
import json, os, resource, signal, stat, sys
here = os.environ.get("BASE", "")
files = {}
for name in sorted(os.listdir("/proc/self/fd"), key=int):
    try:
        text = os.readlink(f"/proc/self/fd/{name}")
        access = open(f"/proc/self/fdinfo/{name}").read().split()
        # From the end, as what is written before may have the folder of the shim.
        position = int(access[1]) - os.stat(f"/proc/self/fd/{name}").st_size if text[0] == "/" else ""
        files[name] = [text.split(":[")[0], position, access[3]]
    except OSError:
        pass
with open("/proc/self/status") as file:
    signals = [line.split() for line in file if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]
with open("/proc/self/cmdline") as file:
    command = file.read().split("\\0")
state = {
    "argv": sys.argv, "orig_argv": sys.orig_argv, "executable": sys.executable, "path": sys.path[:2],
    "name": [__name__, __package__, globals().get("__file__")], "cwd": os.getcwd(), "environ": dict(os.environ),
    "files": files, "umask": os.umask(0o22), "nice": os.getpriority(os.PRIO_PROCESS, 0), "signals": signals,
    "limits": [resource.getrlimit(each) for each in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)],
    "flags": str(sys.flags), "command": command, "affinity": sorted(os.sched_getaffinity(0)),
    "handlers": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
}
print(json.dumps(state, sort_keys=True), flush=True)
if "read" in sys.argv:
    print(repr(sys.stdin.read()), flush=True)
"""

END = """
import os, signal, sys
os.write(1, b"out\n")
os.write(2, b"err\n")
how = sys.argv[1]
if how == "raise":
    raise ValueError(how)
if how.startswith("SIG"):
    os.kill(os.getpid(), getattr(signal, how))
sys.exit(int(how) if how.isdigit() else how)
"""

WAIT = """
import os, signal, sys, threading, time
caught = []
def handle(number, frame):
    caught.append(number)
    print("caught", signal.Signals(number).name, flush=True)
    if number != signal.SIGUSR1:
        sys.exit(7)
if "default" not in sys.argv:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
        signal.signal(number, handle)
open(sys.argv[1], "w").close()
for _ in range(600):
    time.sleep(0.1)
"""

FILES = {
    "show.py": SHOW,
    "end.py": END,
    "wait.py": WAIT,
    "sub/show.py": SHOW,
    "pkg/__init__.py": "",
    "pkg/mod.py": SHOW,
    "tool": "#!/usr/bin/env python\n" + SHOW,
    "absolute": f"#!{sys.executable}\n" + SHOW,
    "torchrun": "import subprocess, sys\nsys.exit(subprocess.call([sys.executable, '-u', *sys.argv[1:]]))\n",
    "run.sh": 'echo in "$@"\npython show.py "$@"\necho out\n',
    "set.sh": "export SOURCED=1\n",
    "broken.py": "def f(:\n",
    "input": "line one\nline two\n",
    "a b.txt": "x",
}

ARGUMENTS = r"""
a
'b c'
"$A"
${B:-default}
$((1 + 2))
*.txt
{x,y}
$(echo sub shell)
`echo old`
é
\$HOME
"\""
''
--flag=1
$'tab\t'
~
""".splitlines()[1:]

PROGRAMS = """
python show.py {a}
python3 show.py {a} {a}
python -u show.py {a}
python ./sub/show.py {a}
python -m pkg.mod {a}
./tool {a}
./absolute {a}
python torchrun show.py {a}
python torchrun -m pkg.mod
python torchrun end.py 5
bash run.sh {a}
python -O show.py
python -X utf8 show.py
python -W error show.py
python -c 'import sys; print(sys.argv)' {a}
python - {a} < show.py
python < show.py
python -V
python -m json.tool input
"$(command -v python3)" end.py 4
python end.py 0
python end.py 3
python end.py text
python end.py raise
python end.py SIGTERM
python end.py SIGKILL
python end.py SIGABRT
python missing.py
python broken.py
python -m missing
python .
""".strip().splitlines()
"""The programs of a command. {a}: an argument"""

COMMANDS = r"""
{p}
exec {p}
A=1 {p}
env A=2 {p}
env -u HOME {p}
export A=3 B=4; {p}
unset HOME; {p}
export LANG=C; {p}
export OMP_NUM_THREADS=3; {p}
TMPDIR=/tmp {p}
PYTHONPATH=sub {p}
PYTHONUNBUFFERED= {p}
PATH=/usr/bin:/bin:$PATH {p}
. ./set.sh; {p}
nice -n 3 {p}
nohup {p}
timeout 60 {p}
taskset -c 0 {p}
setsid -w {p}
command {p}
eval {e}
sh -c {e}
bash -ec {e}
cd sub; python show.py; cd ..; {p}
(cd sub && python show.py)
( {p} )
{{ {p}; }}
f() {{ {p}; }}; f x y
{p} && {p}
{p} || {p}
! {p}
{p}; echo $?
set -e; {p}; echo not after a failure
if {p}; then echo yes; else echo no; fi
case $A in 1) {p};; *) {p};; esac
for i in 1 2; do {p}; done
while read -r line; do python show.py "$line"; done < input
x=$({p}); echo "$x" $?
{p} > out.txt
{p} >> out.txt 2>&1
{p} 2> /dev/null
{p} > /dev/null
{p} <&-
{p} 3> three
{p} 4< input
{p} 9>&1
exec 5> five; {p}; echo shell >&5
exec 2> err.txt; {p}
{p} > >(cat)
diff <({p}) /dev/null | wc -l
{p} | cat
{p} 2>&1 | cat
{p} | tee copy.txt
{{ sleep 0.3; {p}; }} | true
set -o pipefail; {p} | cat; echo $?
echo text | {p}
echo text | python show.py read
python show.py read < input
python show.py read <<< "here $A"
echo a b | xargs python show.py
find . -name '*.txt' -exec python show.py {{}} +
umask 027; {p}
ulimit -n 200; {p}
trap '' INT HUP; {p}
trap 'echo at exit' EXIT; {p}
{p} & wait $!; echo $?
{p} & wait
set -m; {p} & wait
coproc {p}; cat <&${{COPROC[0]}}
""".strip().splitlines()
"""What a command does with its program. {p}: the program; {e}: as one word"""

SIGNALED = """
python wait.py started {d} & until [ -e started ]; do :; done; kill -{s} $!; wait $!; echo $?
set -m; python wait.py started {d} & until [ -e started ]; do :; done; kill -{s} %1; wait $!; echo $?
timeout -s {s} 2 python wait.py started {d}; echo $?
timeout -k 1 -s {s} 2 python wait.py started {d}; echo $?
(until [ -e started ]; do :; done; kill -{s} $$) & exec python wait.py started {d}
""".strip().splitlines()
"""Commands that send a signal {s} to their program, which handles signals, or {d}: has their default actions."""

WAITING = """
python wait.py started {d}
cd . && python wait.py started {d}; echo $?
python wait.py started {d} | cat
trap 'echo shell caught' TERM; python wait.py started {d}; echo $?
python wait.py started {d} & wait; echo $?
python torchrun wait.py started {d}
""".strip().splitlines()
"""Commands to which the engine sends a signal when the file `started` is there."""

SIGNALS = ("TERM", "INT", "KILL")


@dataclass(frozen=True)
class Command:
    """number: the signal that the engine sends; 0 for none"""

    text: str
    number: int = 0


def commands(count: int, seed: int) -> list[Command]:
    """Return random commands, the same for the same seed."""
    chance = random.Random(seed)
    found: dict[Command, None] = {}
    while len(found) < count:
        number, signal = chance.random(), chance.choice(SIGNALS)
        words = {"s": signal, "d": chance.choice(("", "default"))}
        if number < 0.06:
            command = Command(chance.choice(WAITING).format(**words), getattr(signals, f"SIG{signal}"))
        elif number < 0.12:
            command = Command(chance.choice(SIGNALED).format(**words))
        else:
            command = Command("; ".join(_command(chance) for _ in range(chance.choice((1, 1, 1, 2)))))
        found[command] = None
    return list(found)


def _command(chance: random.Random) -> str:
    program = chance.choice(PROGRAMS).replace("{a}", chance.choice(ARGUMENTS), 1).replace("{a}", "last")
    return chance.choice(COMMANDS).format(p=program, e=shlex.quote(program))


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, its output, and the files that it has written. What processes write at the
    same time comes in any order."""

    code: int | None
    log: str
    files: dict[str, str]

    def is_like(self, other: Ended, command: Command) -> bool:
        log, other_log = self.log, other.log
        if set("|&").intersection(command.text):
            log, other_log = "".join(sorted(log)), "".join(sorted(other_log))
        return (self.code, log, self.files) == (other.code, other_log, other.files)


def run(kind: str, each: Sequence[Command], folder: Path, *, forked: bool) -> tuple[list[Ended], int]:
    """Run commands, each in a folder of its own below this one, which is removed. Return also how many programs were
    forked."""
    return asyncio.run(_run(kind, each, folder, forked=forked))


async def _run(kind: str, each: Sequence[Command], folder: Path, *, forked: bool) -> tuple[list[Ended], int]:
    log = folder.with_suffix(".log")
    supervisor = await Supervisor.start(kind, str(log), offline=True)
    (folder / "temporary").mkdir(parents=True)
    slots = asyncio.Semaphore(AT_ONCE)

    async def ended(number: int, command: Command) -> Ended:
        async with slots:
            return await _ended(supervisor, command, folder, number, forked=forked)

    try:
        found = await asyncio.gather(*(ended(number, command) for number, command in enumerate(each)))
        return found, log.read_text(encoding="utf-8").count('"program forked"')
    finally:
        await supervisor.close()
        shutil.rmtree(folder)


async def _ended(supervisor: Supervisor, command: Command, folder: Path, number: int, *, forked: bool) -> Ended:
    place, forks = folder / str(number), folder / f"forks-{number}"
    for name, text in FILES.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o700)
    path = shims.write(forks, Path(sys.executable)) + ":" if forked else ""
    variables = ENVIRONMENT | {"PATH": path + ENVIRONMENT["PATH"]}
    program = Program("rank 0", ("/bin/bash", "-c", command.text), variables, str(place), f"{place}.log")
    (instance,) = INSTANCE_KINDS[supervisor.kind].instances([number % AT_ONCE])
    hosts = ((instance.address, instance.hostname),)
    keep = (str(folder), sys.prefix, SOURCE)
    on = InstanceSpec(instance.index, *hosts[0], hosts, 1 << 20, str(folder / "temporary"), keep)
    code = await _code(supervisor, replace(on, forks=str(forks) if forked else ""), program, command.number)
    written = {
        str(file.relative_to(place)): _normal(file, folder, number)
        for file in sorted(place.rglob("*"))
        if file.is_file() and str(file.relative_to(place)) not in FILES
    }
    return Ended(code, _normal(Path(program.log), folder, number), written)


async def _code(supervisor: Supervisor, on: InstanceSpec, program: Program, number: int) -> int | None:
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    spec = ForkServerSpec(sys.executable, tuple(sorted(ENVIRONMENT.items())), ("json", "logging")) if on.forks else None
    await supervisor.launch(program.folder, on, [program], events, spec)
    sending = asyncio.create_task(_signal(supervisor, program.folder, number)) if number else None
    code = None
    while (event := await asyncio.wait_for(events.get(), BOUND)) is None or event.kind != "gone":
        assert event is not None
        assert event.kind != "failed", event.reason
        code = event.code if event.kind == "exited" else code
    if sending is not None:
        sending.cancel()
    return code


async def _signal(supervisor: Supervisor, folder: str, number: int) -> None:
    while not (Path(folder) / "started").exists():
        await asyncio.sleep(0.01)
    await supervisor.signal(folder, number)


def _normal(file: Path, folder: Path, number: int) -> str:
    """Return an output without what differs between any two runs, and without the folder of the forked programs."""
    text = file.read_text(encoding="utf-8", errors="replace")
    text = text.replace(f"{folder}/forks-{number}/bin:", "").replace(f"{folder}/{number}", "FOLDER")
    text = re.sub(rf"{folder}/forks-{number}/(bin/)?", f"{os.path.dirname(sys.executable)}/", text)
    text = re.sub(r"( at 0x)[0-9a-f]+", r"\1", text)
    text = re.sub(r"(line \d+:) +\d+ ", r"\1 PID ", text)
    return re.sub(r"^\[\d\] \d+", "[1] PID", text, flags=re.MULTILINE)


def compare(kind: str, each: Sequence[Command], folder: Path) -> tuple[list[str], int]:
    """Return a text for each command that does not end the same, and how many programs were forked.

    A process that a signal ends may be faster or slower than another one. Such commands are run again.
    """
    seen: list[tuple[list[Ended], list[Ended]]] = [([], []) for _ in each]
    numbers, total = list(range(len(each))), 0
    for attempt in range(1 + AGAIN):
        for forked in (False, True):
            place = folder / f"{attempt}-{forked:d}"
            ended, count = run(kind, [each[number] for number in numbers], place, forked=forked)
            total += count
            for number, end in zip(numbers, ended, strict=True):
                seen[number][forked].append(end)
        numbers = [number for number in numbers if not _agree(each[number], *seen[number])]
        if not numbers:
            break
    return [f"{each[number]}\n  cold:   {seen[number][0]}\n  forked: {seen[number][1]}" for number in numbers], total


def _agree(command: Command, cold: Sequence[Ended], forked: Sequence[Ended]) -> bool:
    return any(one.is_like(other, command) for one in cold for other in forked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", default="rack", choices=INSTANCE_KINDS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="random-commands-") as folder:
        found, count = compare(arguments.kind, commands(arguments.count, arguments.seed), Path(folder))
    print(*found, f"{len(found)} of {arguments.count} commands differ; {count} programs were forked", sep="\n\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
