"""Model FLOPs utilization: the floating-point operations of a training, divided by the peak of its devices."""

import torch
from transformers import LlamaConfig

PEAK_TFLOPS = {
    "H200": 989.5,
    "H100 PCIe": 756.5,
    "H100 NVL": 835.5,
    "H100": 989.5,
    "GB200": 2500.0,
    "B200": 2250.0,
    "A100": 312.0,
    "A10": 125.0,
    "L40S": 362.0,
    "L4": 121.0,
    "V100": 125.0,
    "T4": 65.0,
}
"""Dense matrix products a second in 16 bits, in units of 10^12, by a part of CUDA's name of the GPU. The first match
counts. From NVIDIA's data sheets of these GPUs, in which the figures of Hopper and later, A10, L4 and L40S with
sparsity are twice as high."""

FULL_TF32 = 0.5
"""TF32 does half as many as 16 bits, on GPUs that have it (NVIDIA A100 and H100 data sheets)."""

WITHOUT_TF32 = ("V100", "T4")


def flops_per_token(config: LlamaConfig, parameters: int) -> int:
    """Return the floating-point operations of the forward and backward pass of one token.

    6 for each parameter that is multiplied with it, and 12 * layers * hidden size * sequence length for attention
    (Chowdhery et al., "PaLM", arXiv:2204.02311, appendix B). Recomputed activations do not count.
    """
    looked_up = 0 if config.tie_word_embeddings else config.vocab_size * config.hidden_size
    attention = 12 * config.num_hidden_layers * config.hidden_size * config.max_position_embeddings
    return int(6 * (parameters - looked_up) + attention)


def peak_flops(device: torch.device, precision: str, tf32: bool) -> float | None:
    """Return the floating-point operations a second that a GPU can do; None if it is not known, as on a CPU."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    found = next((part for part in PEAK_TFLOPS if part in name), None)
    if found is None or (precision == "float32" and (not tf32 or found in WITHOUT_TF32)):
        return None
    if precision == "bfloat16" and found in WITHOUT_TF32:  # nor do they have bfloat16
        return None
    return PEAK_TFLOPS[found] * 1e12 * (FULL_TF32 if precision == "float32" else 1.0)
