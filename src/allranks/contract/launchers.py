"""The launchers that start the ranks of a script. Read a command that starts one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import PurePath

from allranks.contract.layout import Layout
from allranks.errors import InputError, Problem

LAUNCHERS = {
    "torchrun": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate launch": "accelerate",
    "deepspeed": "deepspeed",
    "horovodrun": "mpi",
    "mpiexec": "mpi",
    "mpirun": "mpi",
}
"""Name of a launcher in messages -> key of its start command in STARTS, or mpi."""

OF_ALL_INSTANCES = frozenset(name for name, launch in LAUNCHERS.items() if launch in ("deepspeed", "mpi"))
"""Launchers that start the ranks of all instances from the first instance."""

MODULES = {
    "accelerate.commands.launch": "accelerate launch",
    "deepspeed.launcher.runner": "deepspeed",
    "torch.distributed.launch": "torch.distributed.launch",
    "torch.distributed.run": "torchrun",
}
"""Module that `python -m` starts -> launcher."""

STARTS = {
    "torchrun": "{program} --nnodes {nodes} --node-rank {rank} --nproc-per-node {each} "
    "--master-addr $MASTER_ADDR --master-port $MASTER_PORT{options}",
    # Without GPUs it would start one process. So the options claim several GPUs, and the variable disables them.
    "accelerate": "[ -e /dev/nvidiactl ] || export ACCELERATE_USE_CPU=true; "
    "{program} --num_machines {nodes} --machine_rank {rank} --num_processes {total} --multi_gpu --same_network "
    "--main_process_ip $MASTER_ADDR --main_process_port $MASTER_PORT{options}",
    # It reads the instances from a hostfile; with --no_ssh it contacts none of them.
    "deepspeed": "seq -f 'instance-%.0f slots={each}' {nodes} > hostfile; "
    "{program} --hostfile hostfile --no_ssh --node_rank {rank} --num_gpus {each} "
    "--master_addr $MASTER_ADDR --master_port $MASTER_PORT{options}",
}
"""The command that starts each launcher on an instance of Azure ML, without the script. Fields: {program}, the words
that start the launcher; {nodes}, the number of instances; {each}, the processes per instance; {total}, all processes;
{rank}, the variable with the instance's rank; {options}, further options."""

# With the static rendezvous, the ranks of all attempts would share one store, and might read the address of a rank that
# has ended (pytorch/pytorch#135712, still so in torch 2.13).
_TORCHRUN_AGAIN = (
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 {program} --nnodes {nodes} --nproc-per-node {each} --rdzv-backend c10d "
    "--rdzv-id launch --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT --rdzv-conf is_host=$(({rank} == 0)){options}"
)
COUNTS = {
    **dict.fromkeys(("nnodes", "num_machines", "num_nodes"), "instances"),
    **dict.fromkeys(("nproc_per_node", "num_gpus", "num_accelerators", "N", "npernode", "ppn"), "each"),
    **dict.fromkeys(("num_processes", "n", "np", "c"), "total"),
}
"""Options of launchers for the number of instances, of processes per instance, and of all processes. The names are
without leading hyphens, and with underscores."""

_BY_PLATFORM = re.compile(
    r"(node|machine)_rank|master_|main_process_|rdzv_|local_addr|standalone|same_network|multi_gpu|cpu|gpu_ids|[Hie]$|"
    r"(deepspeed_)?hostfile|.*ssh|ssh_port|force_multi|launcher|include|exclude|deepspeed_(inclu|exclu)sion_filter"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"(.*/)?python(3(\.\d+)?)?")
_PROGRAM = re.compile(rf".*\.(py|sh)|{_PYTHON.pattern}")


def find(words: Sequence[str]) -> tuple[str, int] | None:
    """Return the launcher that a command starts, and the number of words that name it; None without one."""
    name = PurePath(words[0]).name if words else ""
    if name.startswith("python") and "-m" in words[:-1]:
        module = words.index("-m") + 1
        return (MODULES[words[module]], module + 1) if words[module] in MODULES else None
    if name == "accelerate":
        return ("accelerate launch", 2) if words[1:] and words[1] == "launch" else None
    return (name, 1) if name in LAUNCHERS else None


def start_command(launch: str, program: str, layout: Layout, options: str = "") -> str:
    """Return the command that starts a launcher on an instance of Azure ML; see STARTS."""
    nodes, total, start = layout.instance_count, layout.world_size, STARTS[launch]
    if launch == "torchrun" and nodes > 1 and re.search("--max.restarts", options):
        start = _TORCHRUN_AGAIN
    if total == 1 or re.search("--(config_file|use_deepspeed|use_fsdp|use_megatron_lm)", options):
        start = start.replace(" --multi_gpu", "")
    options, each = f" {options}" if options else "", layout.process_count_per_instance
    return start.format(program=program, nodes=nodes, each=each, total=total, rank="$NODE_RANK", options=options)


@dataclass(frozen=True)
class Pasted:
    """A command as typed at a terminal: a script, with or without a launcher in front.

    script:    path and arguments of the script
    variables: assignments in front of the command
    launcher:  a name of LAUNCHERS; "" without one
    program:   the words that start the launcher
    options:   options of the launcher that remain valid on Azure ML
    dropped:   options that Azure ML decides
    counts:    options for the layout, by the values of COUNTS: the option and its number, 0 for one process per GPU
    """

    script: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    launcher: str = ""
    program: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    counts: Mapping[str, tuple[str, int]] = field(default_factory=dict)


def read(words: Sequence[str]) -> Pasted:
    """Read a command. Raise InputError if it has no script, or an option for the layout is not a number."""
    variables, counts, options, dropped = {}, {}, list[str](), list[str]()
    while words and _ASSIGNMENT.match(words[0]):
        name, _, variables[name] = words[0].partition("=")
        words = words[1:]
    launcher, length = find(words) or ("", 0)
    program, words = tuple(words[:length]), words[length:]
    end = next((place for place, word in enumerate(words) if _PROGRAM.fullmatch(word)), len(words)) if launcher else 0
    script = tuple(dropwhile(lambda word: word == "-u" or _PYTHON.fullmatch(word), words[end:]))
    if not script or script[0].startswith("-"):
        fix = "for example: allranks launch -j 2x4 train.py --epochs 3"
        raise InputError(Problem(launcher or "the command", "no script", "the path of a script", fix))
    for option in re.split(r"\0(?=-)", "\0".join(words[:end])) if end else ():
        text, _, value = re.sub("[=\0]", "\0", option, count=1).partition("\0")
        key = text.lstrip("-").replace("-", "_")
        if key in COUNTS:
            counts[COUNTS[key]] = f"{text} {value}", _count(f"{text} {value} of {launcher}", value)
        elif LAUNCHERS[launcher] == "mpi" and key == "x" and "=" in value:
            name, _, variables[name] = value.partition("=")
        elif LAUNCHERS[launcher] == "mpi" or _BY_PLATFORM.match(key):
            dropped.append(option.replace("\0", " "))
        else:
            options += option.split("\0")
    return Pasted(script, variables, launcher, program, tuple(options), tuple(dropped), counts)


def _count(option: str, value: str) -> int:
    if value in ("auto", "gpu"):
        return 0
    if not value.isdecimal() or not int(value):
        raise InputError(Problem(option, "it is not one number of at least 1", "such as 2"))
    return int(value)
