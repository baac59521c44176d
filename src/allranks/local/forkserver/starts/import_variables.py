"""The environment variables that are read when packages are imported. A starter has those of its ranks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

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
"""How the names of such variables begin, by package."""

OF_RANKS = frozenset(
    {"TF_CONFIG", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_RUN_ID", "MLFLOW_TRACKING_URI"}
)
"""Variables with such names that are read later, and that differ between ranks or steps."""

GPUS = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
"""Which GPUs a process sees. A rank reads them when it first uses one, so a starter only has those that hide all."""

KEPT_BY_PYTHON = frozenset(
    {
        "PYTHONBREAKPOINT", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONNOUSERSITE",
        "PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONUNBUFFERED", "PYTHONUTF8",
    }
)  # fmt: skip
"""Variables of the interpreter itself that a forked rank can follow. With another one, ranks start cold."""


def common(environments: Iterable[Mapping[str, str]]) -> tuple[tuple[str, str], ...] | None:
    """Return the variables that are read at import, sorted, which all ranks must have in common; None if they differ,
    or a starter cannot follow one of them."""
    found = {tuple(sorted(_of(environment).items())) for environment in environments}
    if len(found) != 1:
        return None
    (variables,) = found
    for name, value in variables:
        if name.startswith("PYTHON") and name not in KEPT_BY_PYTHON:
            return None
        # The starter has another working directory.
        if name in ("PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD") and not all(map(os.path.isabs, value.split(":"))):
            return None
    return variables


def sees_gpus(environment: Mapping[str, str]) -> bool:
    """Return whether a process with these variables sees a GPU of this machine."""
    return os.path.exists("/dev/nvidiactl") and not any(_hides_all(environment.get(name)) for name in GPUS)


def _of(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if _is_read(name, value)}


def _is_read(name: str, value: str) -> bool:
    if name in GPUS:
        return _hides_all(value)
    return name in NAMES or (name.startswith(PREFIXES) and name not in OF_RANKS)


def _hides_all(value: str | None) -> bool:
    return value is not None and value.strip() in ("", "-1", "none", "void", "NoDevFiles")
