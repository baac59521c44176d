"""Tables of the packages that a fork server imports before it forks ranks, and of the variables that they read.

Other packages are not imported ahead; docs/starting-ranks.md says why for some. A package belongs in the first table if
importing it starts no Python thread, opens no GPU or connection, and reads nothing that differs between the ranks of a
step.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Package:
    """A package that a fork server imports.

    modules:       that are imported for it, in this order
    heavy:         whether its import takes long enough to be worth a fork server
    looks_for_gpus: whether its import queries the GPU driver. A process that has done so cannot be forked, so with
                   visible GPUs the ranks import it themselves.
    """

    modules: tuple[str, ...]
    heavy: bool = True
    looks_for_gpus: bool = False


def _each(*names: str, heavy: bool = True) -> dict[str, Package]:
    """Return packages of which the imported module has the name that a script imports."""
    return {name: Package((name,), heavy) for name in names}


PRELOADED: Mapping[str, Package] = {
    **_each("yaml", "numpy", heavy=False),
    "torch": Package(("torch", "torch.distributed")),
    "torch.distributed.run": Package(("torch.distributed.run", "torch.distributed.elastic.multiprocessing.api")),
    # Building any optimizer imports it.
    "torch.optim": Package(("torch._dynamo",)),
    **_each("torch.distributed.fsdp", "torch.distributed.checkpoint", "torch.distributed.tensor", "torch.export"),
    **_each("scipy", "scipy.sparse", "scipy.optimize", "scipy.stats", "pyarrow", "pandas"),
    **_each("sklearn", "sklearn.datasets", "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection"),
    "PIL": Package(("PIL", "PIL.Image"), heavy=False),
    **_each("matplotlib", "matplotlib.pyplot"),
    **_each("tokenizers", heavy=False),
    "safetensors": Package(("safetensors", "safetensors.torch"), heavy=False),
    "transformers": Package(("transformers", "torch._dynamo")),
    "accelerate": Package(("accelerate", "torch._dynamo")),
    **_each("datasets", "peft", "trl", "accelerate.commands.launch"),
    # What it imports to find the operators that it has built.
    "deepspeed": Package(
        ("deepspeed", "torch.utils.cpp_extension", "deepspeed.ops.op_builder.all_ops"), looks_for_gpus=True
    ),
    "deepspeed.initialize": Package(("torch._dynamo",)),
    **_each("mlflow"),
    # What a model is exported with.
    "allranks.runtime.metrics.mlflow_pytorch": Package(("torch.export", "torch.export._trace")),
    # It imports azure-ai-ml to execute a component, if that is installed.
    "mldesigner": Package(("mldesigner", "mldesigner._dependent_component_executor")),
    **_each("tensorflow"),
}
"""By the module or name that a script imports. Packages follow those that they depend on."""

LAZY: Mapping[str, Mapping[str, str]] = {
    "transformers": {"AutoModel": "PreTrainedModel", "AutoTokenizer": "PreTrainedTokenizerFast"},
    "trl": {},
}
"""Packages that import their modules when a name is first used. The names that a script imports from them are imported
ahead. If such a name begins with a key, so is the value: AutoModelForCausalLM imports no model before it loads one, and
every model needs the module of PreTrainedModel."""

RUNTIME = ("torch", "torch.optim", "torch.distributed.checkpoint")
"""What a script with `allranks.runtime` imports besides its own imports."""

RUNTIME_WITHOUT_TORCH = (
    "allranks.runtime.EVICTED", "allranks.runtime.RankEnv", "allranks.runtime.argument", "allranks.runtime.clean_exit",
    "allranks.runtime.detect", "allranks.runtime.note", "allranks.runtime.prepare_libraries",
    "allranks.runtime.tensorflow",
)  # fmt: skip
"""Parts of `allranks.runtime` that need no torch."""

TRACKED = ("mlflow", "mlflow.store.tracking.sqlalchemy_store", "mlflow.pyfunc")
"""Modules for a step with an MLflow run, if its code imports MLflow anywhere, or uses the runtime, which does so in a
thread of rank 0."""

ATTRIBUTES: Mapping[str, str] = {
    "torch.optim": r"\boptim\b|\bcompile\b",
    "torch.distributed.fsdp": r"\bFullyShardedDataParallel\b|\bfully_shard\b",
    "torch.distributed.tensor": r"\bDTensor\b|\bDeviceMesh\b|\binit_device_mesh\b",
    "torch.export": r"\btorch\.(export|onnx)\b",
    "deepspeed.initialize": r"\bdeepspeed\.initialize\b",
}
"""Parts of a package that are reached through the package itself, with what is written in a script that uses them. They
change nothing but sys.modules, so a script that does not use them after all may have them too."""

NAMES = frozenset(
    {
        "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "TZ",
        "USER", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "MPLBACKEND", "MPLCONFIGDIR",
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "GLIBC_TUNABLES",
    }
)  # fmt: skip
PREFIXES = (
    "LC_", "LD_", "MALLOC_", "PYTHON",
    "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "NUMEXPR_", "VECLIB_", "TBB_", "DNNL_", "ONEDNN_",
    "NUMPY_", "NPY_", "PANDAS_", "ARROW_", "SCIPY_", "SKLEARN_", "JOBLIB_", "LOKY_",
    "CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_", "HIP_", "ROCR_", "NCCL_", "GLOO_", "UCX_", "TP_SOCKET_",
    "TORCH_", "PYTORCH_", "TORCHINDUCTOR_", "TORCHDYNAMO_", "ATEN_", "C10_", "TRITON_", "DS_", "DEEPSPEED_",
    "HF_", "HUGGINGFACE_", "TRANSFORMERS_", "TOKENIZERS_", "DATASETS_", "SAFETENSORS_", "ACCELERATE_", "USE_",
    "TF_", "TF2_", "XLA_", "KERAS_", "GRPC_", "ABSL_", "MLFLOW_", "_MLFLOW_",
)  # fmt: skip
"""Prefixes of the names of such variables, by package."""

OF_RANKS = frozenset(
    {
        "TF_CONFIG", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_RUN_ID", "MLFLOW_TRACKING_TOKEN",
        "MLFLOW_TRACKING_URI",
    }
)  # fmt: skip
"""Variables with such names that are read later, and that differ between ranks or steps."""

GPUS = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
"""Which GPUs a process sees. A rank reads them when it first uses one, so a fork server has only those that
hide all."""

KEPT_BY_PYTHON = frozenset(
    {
        "PYTHONBREAKPOINT", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONNOUSERSITE",
        "PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONUNBUFFERED", "PYTHONUTF8",
    }
)  # fmt: skip
"""Variables of the interpreter itself that a forked rank can follow. With another one, ranks start cold."""


def common(environments: Iterable[Mapping[str, str]]) -> tuple[tuple[str, str], ...] | None:
    """Return the variables that are read at import, sorted, which all ranks must have in common; None if they differ,
    or a fork server cannot follow one of them."""
    found = {
        tuple(sorted((name, value) for name, value in environment.items() if _is_read(name, value)))
        for environment in environments
    }
    if len(found) != 1:
        return None
    (variables,) = found
    for name, value in variables:
        if name.startswith("PYTHON") and name not in KEPT_BY_PYTHON:
            return None
        # The fork server has another working directory.
        if name in ("PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD") and not all(map(os.path.isabs, value.split(":"))):
            return None
    return variables


def sees_gpus(environment: Mapping[str, str]) -> bool:
    """Return whether a GPU of this machine is visible to a process with these variables."""
    return os.path.exists("/dev/nvidiactl") and not any(_hides_all(environment.get(name)) for name in GPUS)


def _is_read(name: str, value: str) -> bool:
    if name in GPUS:
        return _hides_all(value)
    return name in NAMES or (name.startswith(PREFIXES) and name not in OF_RANKS)


def _hides_all(value: str | None) -> bool:
    return value is not None and value.strip() in ("", "-1", "none", "void", "NoDevFiles")
