"""What MLflow loads: a language model that answers or continues prompts. It needs no file but those of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel
from transformers import AutoModelForCausalLM, AutoTokenizer

DEFAULTS: dict[str, Any] = {"max_new_tokens": 128, "temperature": 0.0, "top_p": 1.0, "seed": 0, "chat": True}


class LanguageModel(PythonModel):  # type: ignore[misc]  # MLflow is untyped
    """Answers the prompts of a column, or continues them if the model has no chat template."""

    def load_context(self, context: Any) -> None:
        folder = context.artifacts["huggingface"]
        self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", local_files_only=True)
        adapter = Path(folder, "adapter")
        if adapter.is_dir():
            from peft import PeftModel

            self.model = PeftModel.from_pretrained(self.model, adapter).merge_and_unload()
        self.model.eval().to("cuda" if torch.cuda.is_available() else "cpu")

    # No annotations: MLflow would read a schema from them, which the signature already defines.
    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]  # noqa: ARG002
        """Return the answers to a column of prompts.

        params: max_new_tokens; temperature, 0 for the most likely token; top_p and seed of sampling; chat, whether a
                prompt is a user's message or a text to continue
        """
        chosen = DEFAULTS | (params or {})
        torch.manual_seed(chosen["seed"])
        return [self._answer(prompt, chosen) for prompt in model_input.iloc[:, 0].tolist()]

    def _answer(self, prompt: str, chosen: dict[str, Any]) -> str:
        if chosen["chat"] and self.tokenizer.chat_template:
            inputs = self.tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}],
                add_generation_prompt=True,
                return_dict=True,
                return_tensors="pt",
            )
        else:
            inputs = self.tokenizer(prompt, return_tensors="pt")
        sampling: dict[str, Any] = {"do_sample": False}
        if chosen["temperature"] > 0:
            sampling = {"do_sample": True, "temperature": chosen["temperature"], "top_p": chosen["top_p"]}
        ids = inputs["input_ids"].to(self.model.device)
        mask = inputs["attention_mask"].to(self.model.device)
        with torch.inference_mode():
            output = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=chosen["max_new_tokens"],
                pad_token_id=self.tokenizer.pad_token_id or self.tokenizer.eos_token_id,
                **sampling,
            )
        return str(self.tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True))


set_model(LanguageModel())
