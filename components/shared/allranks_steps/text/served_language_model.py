"""The language model that MLflow serves. It answers or continues prompts, and needs only the model's files."""

from pathlib import Path
from typing import Any

import torch
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel
from transformers import AutoModelForCausalLM, AutoTokenizer


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
    def predict(self, context, model_input, params):  # type: ignore[no-untyped-def]  # noqa: ARG002
        """Return the answers to a column of prompts, or their continuations. They depend on the seed only.

        params: those of `mlflow_model.GENERATION`
        """
        torch.manual_seed(params["seed"])
        return [self._answer(prompt, **params) for prompt in model_input.iloc[:, 0].tolist()]

    def _answer(
        self, prompt: str, max_new_tokens: int, temperature: float, top_k: int, top_p: float, chat: bool, **_: Any
    ) -> str:
        tokenizer = self.tokenizer
        if chat and tokenizer.chat_template:
            messages = [{"role": "user", "content": prompt}]
            text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        else:
            # In the training data, each text follows this token.
            text = (tokenizer.bos_token or "") + prompt
        inputs = tokenizer(text, add_special_tokens=False, return_tensors="pt").to(self.model.device)
        sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p} if temperature > 0 else {}
        with torch.inference_mode():
            output = self.model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                do_sample=bool(sampling),
                max_new_tokens=max_new_tokens,
                pad_token_id=tokenizer.pad_token_id or tokenizer.eos_token_id,
                **sampling,
            )
        return str(tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))


set_model(LanguageModel())
