"""Known signatures of failures in exceptions and logs.

A code is a section of docs/troubleshooting.md, or a rule of `allranks check`. To add a signature, add a row, and for a
new code a section. The first signature that matches counts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from allranks.contract import report


@dataclass(frozen=True)
class Signature:
    """A known failure.

    code:      of its explanation
    pattern:   of an exception, or of a line of a log
    advice:    what to do, in one sentence; may name a group of the pattern
    source:    where the text comes from
    within:    pattern that the traceback must have
    isolated:  whether it counts only on instances with (True) or without (False) a network of their own; None: always
    depth:     how far it is from the cause of a failure: -1 for a mismatch of collectives, from which crashes of other
               ranks may follow, 0 for any other cause, 1 for a time-out of a collective, 2 for a lost connection, which
               also follows from the time-out of another rank
    """

    code: str
    pattern: str
    advice: str
    source: str
    within: str = ""
    isolated: bool | None = None
    depth: int = 0

    @cached_property
    def regex(self) -> re.Pattern[str]:
        return re.compile(self.pattern)


@dataclass(frozen=True)
class Known:
    """A signature that was found. match: in the line that has it"""

    signature: Signature
    match: re.Match[str]


def find(lines: Iterable[str], *, isolated: bool | None = None, traceback: str = "") -> Known | None:
    """Return the first signature of the table that one of the lines has.

    isolated:  whether the instances have a network of their own; None if it is not known
    traceback: of the exception that is the only line
    """
    texts = list(lines)
    rows = (row for row in SIGNATURES if row.isolated in (None, isolated) and re.search(row.within, traceback))
    return next((Known(row, match) for row in rows for text in texts if (match := row.regex.search(text))), None)


def depth(text: str) -> int:
    """Return the `Signature.depth` of an exception; 0 for one without a signature."""
    known = find([text])
    return 0 if known is None else known.signature.depth


FAILED_TO_PASS = re.compile(r"Ranks? (?P<rank>\d+)(?:, \d+)* failed to pass monitoredBarrier in \d+ ms")
"""What rank 0 says of the ranks that it has waited for in vain."""

GLOO_ABORT = "terminate called without an active exception"
"""Printed by libstdc++ if torch's gloo threads still exist while the interpreter shuts down (seen with torch 2.13)."""

NO_NETWORK = "no-network"
MISSING_PACKAGE = "missing-package"
READ_ONLY = "read-only-input"

NOT_STARTED = "did not start"
"""In the reason of a verdict about an instance."""

KERNEL_OUT_OF_MEMORY = "killed by the kernel: out of memory"
"""The reason of a verdict on a rank that the kernel killed."""

_LAUNCH_VARIABLES = r"(?:LOCAL_|NODE_)?RANK|(?:LOCAL_)?WORLD_SIZE|MASTER_(?:ADDR|PORT)|TF_CONFIG|OMPI_COMM_WORLD_\w+"

SIGNATURES: tuple[Signature, ...] = (
    Signature(
        code="shared-memory",
        pattern=r"(?i:insufficient shared memory|\bbus error\b|SIGBUS)"
        r"|unable to (?:allocate shared memory|write to file </torch_)"
        r"|unable to (?:open|mmap) .*</torch_|No space left on device.*/dev/shm",
        advice="/dev/shm is too small: set resources.shm_size, for example to 16g, or use fewer workers of data"
        " loaders",
        source="torch/utils/data/_utils/signal_handling.py, aten/src/ATen/MapAllocator.cpp",
    ),
    Signature(
        code="disk-full",
        pattern=report.FULL_DISK.pattern,
        advice="a disk was full, or a quota reached, while the rank wrote a file; the traceback shows which one",
        source="errno ENOSPC and EDQUOT; caffe2/serialize/inline_container.cc",
    ),
    Signature(
        code=READ_ONLY,
        pattern=r"Read-only file system|errno = 30\b",
        advice="the file system is read-only, as that of a mounted input is; outputs are for writing: write to one",
        source="errno EROFS; hdf5 src/H5FDsec2.c",
    ),
    Signature(
        code="option-line",
        pattern=r"(?:^|: )--?[A-Za-z]\S*: (?:command )?not found",
        advice="a line of the command begins with this option, and the shell ends a command at the end of its line:"
        " write command: >- in place of |, or end the line before with a \\",
        source="bash execute_cmd.c; dash src/exec.c",
    ),
    Signature(
        code="deepspeed-auto",
        pattern=r"TypeError: .*\bstr\b|\bauto\b|incompatible function arguments|validation errors? for DeepSpeed\w+",
        within=r"/deepspeed/(?!(?s:.*\n  File \"(?!\S*/(?:deepspeed|torch)/)))",
        advice='a value in DeepSpeed\'s configuration is a text where DeepSpeed needs a number, such as "auto", which'
        " only the Trainer of Transformers and Accelerate replace: write the number",
        source="deepspeed/runtime/config.py",
    ),
    Signature(
        code="shadowed-module",
        pattern=rf"'(?P<module>{'|'.join(sys.stdlib_module_names)})'(?: has no attribute '\w+')?"
        r" \((?:most likely|consider renaming|(?!\S*/lib/python3)\S*/)",
        advice="the code's {module}.py hides the module {module} of the standard library: rename the file",
        source="CPython's Python/ceval.c and Objects/moduleobject.c",
    ),
    Signature(
        code="shadowed-module",  # before Python 3.13, which names the file
        pattern=rf"AttributeError: module '(?P<module>{'|'.join(sys.stdlib_module_names)})' has no attribute '\w+'$",
        advice="if the code has a {module}.py, it hides the module {module} of the standard library: rename the file;"
        " else this Python's {module} has no such name",
        source="CPython's Objects/moduleobject.c",
    ),
    Signature(
        code=MISSING_PACKAGE,
        pattern=r"(?:ModuleNotFoundError: No module named '|/python[\d.]*: No module named )(?P<module>[\w.]+)",
        advice="Python does not find {module}: install its package in the step's environment; if it is in the code,"
        " start the script with python -m, or set PYTHONPATH",
        source="CPython's Lib/importlib/_bootstrap.py",
    ),
    Signature(
        code="out-of-memory",
        pattern=rf"{KERNEL_OUT_OF_MEMORY}|CUDA out of memory|CUDA error: out of memory|^MemoryError\b"
        r"|Cuda failure \d+ 'out of memory'|Cannot allocate memory"
        r"|can't allocate memory|OutOfMemoryError|OOM when allocating tensor|std::bad_alloc|oom-kill",
        advice="use a smaller batch per rank, fewer workers, or a larger size",
        source="c10/core/impl/alloc_cpu.cpp, c10/cuda/CUDACachingAllocator.cpp; tensorflow/core/framework;"
        " nccl src/include/checks.h",
    ),
    Signature(
        code="shared-gpus",
        pattern=r"Duplicate GPU detected",
        advice="NCCL needs a GPU for each rank: call torch.cuda.set_device with LOCAL_RANK, and set"
        " process_count_per_instance to the number of GPUs",
        source="nccl src/init.cc",
    ),
    Signature(
        code="device-assert",
        pattern=r"device-side assert triggered|illegal memory access was encountered",
        advice="a kernel failed that the GPU had started earlier, often because of an index or a label out of range: to"
        " get its line, set CUDA_LAUNCH_BLOCKING=1 in the step's environment variables",
        source="c10/cuda/CUDAException.cpp; cudaErrorAssert and cudaErrorIllegalAddress",
    ),
    Signature(
        code="aborted-at-exit",
        pattern=rf"^{GLOO_ABORT}$",
        advice="torch's gloo may abort a process that exits, also after its work; this rank did not report that its"
        " work was done. To exit without the abort: python -m allranks.runtime SCRIPT",
        source="seen with torch 2.13",
    ),
    Signature(
        code="missing-instance",
        pattern=NOT_STARTED,
        advice="the step needs all its instances, and one did not start its processes; if this machine is overloaded,"
        " use fewer instances or a longer --start-timeout",
        source="the reason of a verdict",
    ),
    Signature(
        code="wrong-arguments",
        pattern=r"\berror: (?:unrecognized arguments|the following arguments are required"
        r"|argument [^ ]+: |ambiguous option)",
        advice="correct the step's command, or the options that the script declares",
        source="CPython's Lib/argparse.py",
    ),
    Signature(
        code="launch-variable",
        pattern=rf"KeyError: '(?:{_LAUNCH_VARIABLES})'"
        rf"|environment variable (?:{_LAUNCH_VARIABLES}) expected, but not set",
        advice="the distribution of the step does not set this variable: change it, or read a variable that it sets",
        source="torch/distributed/rendezvous.py; os.environ",
    ),
    Signature(
        code="port-in-use",
        pattern=r"EADDRINUSE|[Aa]ddress already in use",
        advice="another process listens at this port: use MASTER_PORT as the launch sets it, or port 0",
        source="errno EADDRINUSE; torch/csrc/distributed/c10d/TCPStore.cpp",
    ),
    Signature(
        code="wrong-interface",
        pattern=r"Unable to find (?:interface|address) for|Bootstrap : no socket interface found"
        r"|no socket interface found",
        advice="correct GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME, or leave them out",
        source="gloo/transport/tcp/device.cc; nccl src/misc/socket.cc",
    ),
    Signature(
        code="collective-mismatch",
        pattern=r"op\.preamble\.length <= op\.nbytes|Detected mismatch between collectives|MPI_ERR_TRUNCATE"
        r"|message truncated"
        r"|Mismatched (?:allreduce|allgather|broadcast|ALLREDUCE|ALLGATHER|BROADCAST|data types|\w+ tensor shapes)"
        r"|ncclInvalidUsage"
        r"|Shape mismatch in the collective|expected type \d+ and data_type \d+ but got|joining a group with size",
        advice="ranks called a collective with different shapes or types, or in a different order; to see both calls,"
        " set TORCH_DISTRIBUTED_DEBUG=DETAIL in the step's environment variables",
        source="gloo/transport/tcp/pair.cc; torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp;"
        " horovod/common/controller.cc; tensorflow/core/common_runtime/collective_param_resolver_local.cc",
        depth=-1,
    ),
    Signature(
        code=NO_NETWORK,
        pattern=r"Network is unreachable|Name or service not known|No route to host|Temporary failure resolving"
        r"|Could not resolve host|CondaHTTPError",
        advice="instances of the rack reach only each other with --offline or without passt: to download, "
        "apt install passt, or use --instances loopback",
        source="errno ENETUNREACH and EHOSTUNREACH; glibc's getaddrinfo",
        isolated=True,
    ),
    Signature(
        code="long-temporary-path",
        pattern=r"AF_UNIX path",
        advice="the temporary folder's path is too long for a socket in it: set TMPDIR to a shorter one, as /tmp is",
        source="CPython's Modules/socketmodule.c",
        isolated=False,
    ),
    Signature(
        code="mlflow-version",
        pattern=r"Can't locate revision identified by|Detected out-of-date database schema",
        advice="the mlflow that logs cannot use the database of another version, that of allranks, which did not find "
        "it in the step's environment: declare it there, or the version that is installed beside allranks",
        source="alembic/script/revision.py; mlflow/store/db/utils.py",
    ),
    Signature(
        code="lost-rank",
        pattern=r"[Cc]onnection (?:was )?(?:closed|reset|aborted)|[Cc]onnection refused|[Bb]roken pipe"
        r"|DistNetworkError|DistStoreError"
        r"|remote process|its own log says why|Socket (?:closed|Timeout)|Application timeout caused pair closure"
        r"|ncclRemoteError|ncclInternalError|ncclSystemError|NCCL communicator was aborted|Store is not available"
        r"|Horovod has been shut down|HorovodInternalError|peer process has unexpectedly disconnected"
        r"|MPI_ERR_PROC_FAILED|successfully reached monitoredBarrier, but received errors"
        r"|(?:Collective ops is aborted|\bUnavailableError\b)(?!.*stopped sending heartbeats)"
        r"|coordination service|\bAbortedError\b|\bCancelledError\b"
        r"|failed to connect to|ActorDiedError(?!.*worker process has died(?!.*SIGTERM))|ActorUnavailableError"
        r"|ended by SIGTERM|SignalException",
        advice="another rank ended or lost its connection first: its log says why",
        source="gloo/transport/tcp/pair.cc; nccl src/debug.cc; horovod/common/exceptions.py;"
        " tensorflow/core/distributed_runtime",
        depth=2,
    ),
    Signature(
        code="collective-timeout",
        pattern=r"Timed out (?:waiting|after) \d+|Watchdog caught collective operation timeout|wait timeout after"
        r"|timed out after \d+ ?m?s"
        r"|failed to pass monitoredBarrier|monitoredBarrier.*(?:timeout|timed out)"
        r"|Timed out initializing process group|connectFullMesh failed|DEADLINE_EXCEEDED|errors_impl\.DeadlineEx"
        r"|stopped sending heartbeats",
        advice="a rank did not take part in this collective in time: see where its log ends",
        source="gloo/transport/tcp/unbound_buffer.cc; torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp and"
        " ProcessGroupGloo.cpp",
        depth=1,
    ),
)
