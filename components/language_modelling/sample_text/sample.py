"""Generate continuations of a prompt, and write them to a file and to the log."""

import mlflow.pyfunc
import torch

from allranks.runtime import arguments
from allranks_steps.models.mlmodel import load_model, read_mlmodel

BETWEEN = "\n" + "-" * 40 + "\n"
FIX = "give the output `model` of train_language_model or finetune_language_model"


def main() -> None:
    args = arguments()
    read_mlmodel(args.model, fix=FIX)
    model = load_model(mlflow.pyfunc, args.model, fix=FIX)
    # Decoding one token at a time is too little work for several threads: synchronisation would dominate.
    torch.set_num_threads(1)
    params = {
        "max_new_tokens": args.max_tokens,
        "temperature": args.temperature,
        "top_k": args.top_k,
        "seed": args.seed,
        "chat": False,
    }
    texts = [args.prompt + text for text in model.predict([args.prompt] * args.samples, params=params)]
    content = BETWEEN.join(texts) + "\n"
    args.text.parent.mkdir(parents=True, exist_ok=True)
    args.text.write_text(content, encoding="utf-8")
    print(content, end="")


if __name__ == "__main__":
    main()
