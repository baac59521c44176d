"""Lines of logs, and the signatures that they have."""

import pytest

from allranks.history.records import Verdict
from allranks.verdict import judge, signatures

CIRCULAR = "most likely due to a circular import"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("RuntimeError: unable to write to file </torch_71_829_0>: No space left on device (28)", "shared-memory"),
        ("ERROR: Unexpected bus error encountered in worker. insufficient shared memory (shm).", "shared-memory"),
        ("OSError: [Errno 28] No space left on device: '/mnt/model.pt'", "disk-full"),
        ("ModuleNotFoundError: No module named 'deepspeed'", "missing-package"),
        ("/usr/bin/python3.11: No module named src.jobs", "missing-package"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "out-of-memory"),
        ("DistBackendError: NCCL unhandled cuda error: Cuda failure 2 'out of memory'", "out-of-memory"),
        (
            "RuntimeError: [enforce fail at alloc_cpu.cpp:117] CPUAllocator: can't allocate memory",
            "out-of-memory",
        ),
        ("NCCL invalid usage: Duplicate GPU detected : rank 3 and rank 2 both on CUDA device 60", "shared-gpus"),
        ("torch.AcceleratorError: CUDA error: device-side assert triggered", "device-assert"),
        ("terminate called without an active exception", "aborted-at-exit"),
        ("KeyError: 'LOCAL_RANK'", "launch-variable"),
        ("ValueError: environment variable RANK expected, but not set", "launch-variable"),
        ("torch.distributed.DistNetworkError: The server socket has failed to listen. EADDRINUSE", "port-in-use"),
        ("OSError: [Errno 98] Address already in use", "port-in-use"),
        ("alembic.util.exc.CommandError: Can't locate revision identified by 'dc11669786a5'", "mlflow-version"),
        ("MlflowException: Detected out-of-date database schema (found version a, but expected b)", "mlflow-version"),
        ("RuntimeError: [enforce fail at device.cc:208] Unable to find interface for: [eth9]", "wrong-interface"),
        ("RuntimeError: [pair.cc:460] op.preamble.length <= op.nbytes. 16 vs 12", "collective-mismatch"),
        ("horovod.common.exceptions.HorovodInternalError: Mismatched allreduce tensor shapes", "collective-mismatch"),
        ("mpi4py.MPI.Exception: MPI_ERR_TRUNCATE: message truncated", "collective-mismatch"),
        ("torch.distributed.DistBackendError: ncclRemoteError: A call failed", "lost-rank"),
        ("BrokenPipeError: [Errno 32] Broken pipe", "lost-rank"),
        ("ConnectionError: rank 2 has ended; its own log says why", "lost-rank"),
        ("RuntimeError: Rank 2 failed to pass monitoredBarrier in 30000 ms", "collective-timeout"),
        ("Accelerate CLI tool: error: unrecognized arguments: --multi_cpu", "wrong-arguments"),
        ("ImportError: cannot import name 'Queue' from 'queue' (/code/queue.py)", "shadowed-module"),
        (
            f"ImportError: cannot import name 'x' from partially initialized module 'types' ({CIRCULAR})",
            "shadowed-module",
        ),
        (
            f"AttributeError: partially initialized module 'random' has no attribute 'seed' ({CIRCULAR})",
            "shadowed-module",
        ),
        (
            "AttributeError: module 'random' has no attribute 'seed' (consider renaming '/code/random.py'",
            "shadowed-module",
        ),
        (
            "ImportError: cannot import name 'Mapping' from 'collections' (/lib/python3.11/collections/__init__.py)",
            None,
        ),
        ("ImportError: cannot import name 'load' from 'model' (/code/model.py)", None),
        ("AttributeError: module 'random' has no attribute 'Random'", "shadowed-module"),
        ("AttributeError: module 'model' has no attribute 'Random'", None),
        ("RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors while waiting", "lost-rank"),
        ("OSError: [Errno 30] Read-only file system: '/mnt/inputs/data/x'", "read-only-input"),
        ("touch: cannot touch '/mnt/inputs/data/x': Read-only file system", "read-only-input"),
        ("OSError: unable to create file (name = 'x.h5', errno = 30, error message = '...')", "read-only-input"),
        ("/bin/bash: line 2: --lr: command not found", "option-line"),
        ("bash: --lr=a:b: command not found", "option-line"),
        ("sh: 2: -j: not found", "option-line"),
        ("/bin/bash: line 2: julia: command not found", None),
        ("pydantic_core.ValidationError: 1 validation error for DeepSpeedZeroConfig", None),
        ("TypeError: '>' not supported between instances of 'str' and 'int'", None),
        ("ValueError: bad batch in shard 7", None),
    ],
)
def test_signatures(line: str, code: str | None) -> None:
    known = signatures.find([line])
    assert (known and known.signature.code) == code


def test_a_worker_without_heartbeats_was_waited_for_and_not_lost() -> None:
    """The engine then asks who is not there: a worker that is stopped closes no connection."""
    aborted = "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: "
    assert signatures.depth(f"{aborted}Socket closed") == 2
    assert signatures.depth(f"{aborted}The following tasks are unhealthy (stopped sending heartbeats):") == 1


PIP = (
    "WARNING: Retrying (Retry(total=0)): NameResolutionError(\"Failed to resolve 'pypi.org': Name or service not known",
    "ERROR: No matching distribution found for mlflow<2.19",
)
UV = (
    "error: Request failed after 3 retries",
    "  cause: failed to lookup address information: Name or service not known",
)
CURL = ("curl: (6) Could not resolve host: example.org",)


@pytest.mark.parametrize(
    ("tail", "isolated", "code", "installs"),
    [
        (PIP, True, "no-network", True),
        (UV, True, "no-network", True),
        (CURL, True, "no-network", False),
        (PIP, False, "", False),
        (PIP[1:], True, "", False),
    ],
    ids=["pip", "uv", "curl", "on loopback", "no such version"],
)
def test_packages_that_a_rack_without_a_way_out_installs(
    tail: tuple[str, ...], isolated: bool, code: str, installs: bool
) -> None:
    verdict = judge.with_advice(Verdict("train", "ended with exit code 1", tail=tail), isolated=isolated)
    assert verdict.code == code
    assert ("apt install passt, or use --instances loopback" in verdict.advice) is bool(code)
    expected = "ended with exit code 1: it installs packages, and its instances have no way out to the network"
    assert verdict.reason == (expected if installs else "ended with exit code 1")


def _frames(*files: str) -> str:
    return "Traceback (most recent call last):\n" + "".join(
        f'  File "{file}", line 9, in f\n    g()\n' for file in files
    )


CONFIG, TORCH = "/venv/site-packages/deepspeed/runtime/config.py", "/venv/site-packages/torch/optim/adamw.py"
FEW = "TypeError: '>' not supported between instances of 'str' and 'int'"


@pytest.mark.parametrize(
    ("reason", "files", "code"),
    [
        (FEW, ("train.py", CONFIG), "deepspeed-auto"),
        ("TypeError: unsupported operand type(s) for //: 'str' and 'int'", ("train.py", CONFIG), "deepspeed-auto"),
        ("TypeError: '<=' not supported between instances of 'float' and 'str'", (CONFIG, TORCH), "deepspeed-auto"),
        ("pydantic_core.ValidationError: 1 validation error for DeepSpeedZeroConfig", (CONFIG,), "deepspeed-auto"),
        ("AssertionError: train_batch_size is not equal: auto != 2 * auto * 4", (CONFIG,), "deepspeed-auto"),
        (FEW, ("train.py",), ""),
        (FEW, (CONFIG, "/code/model.py"), ""),
        (FEW, (CONFIG, "/code/model.py", TORCH), ""),
        ("TypeError: f() missing 1 argument", (CONFIG,), ""),
    ],
)
def test_auto_in_the_configuration_of_deepspeed(reason: str, files: tuple[str, ...], code: str) -> None:
    verdict = judge.with_advice(Verdict("train", reason, traceback=f"{_frames(*files)}{reason}"))
    assert verdict.code == code
