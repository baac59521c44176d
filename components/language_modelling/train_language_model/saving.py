"""The trained model in Transformers' format, within an MLflow model that continues prompts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import LlamaConfig, PreTrainedTokenizerFast

from allranks_steps.text.llama import save_network
from allranks_steps.text.mlflow_model import GENERATION, LANGUAGE_MODEL, write_mlflow_model
from allranks_steps.text.model_folder import WITHIN

PARAMS = GENERATION | {"temperature": ("double", 0.8)}


def save(folder: Path, config: LlamaConfig, weights: Mapping[str, Any], tokenizer: Tokenizer, end: str) -> None:
    """Write the MLflow model.

    weights: state dict of the network
    end:     the token that ends a text
    """
    save_network(folder / WITHIN, config, weights)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=end, eos_token=end, pad_token=end)
    fast.save_pretrained(folder / WITHIN)
    write_mlflow_model(folder, LANGUAGE_MODEL, ("torch", "transformers"), PARAMS)
