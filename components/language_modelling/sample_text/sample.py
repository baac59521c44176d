"""Let a language model continue a prompt, and write the texts to a file and to the log."""

from __future__ import annotations

import torch

from allranks.errors import InputError, Problem
from allranks.runtime import arguments
from allranks_steps.text.generation import continued
from allranks_steps.text.language_model import BadModel, read

BETWEEN = "\n" + "-" * 40 + "\n"


def main() -> None:
    args = arguments()
    try:
        model = read(args.model)
    except BadModel as error:
        raise InputError(Problem("input model", str(error))) from None
    # Decoding one token at a time is too little work for several threads: synchronisation would dominate.
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(args.seed)
    texts = [
        continued(
            model,
            args.prompt,
            max_tokens=args.max_tokens,
            temperature=args.temperature,
            top_k=args.top_k,
            generator=generator,
        )
        for _ in range(args.samples)
    ]
    content = BETWEEN.join(texts) + "\n"
    args.text.parent.mkdir(parents=True, exist_ok=True)
    args.text.write_text(content, encoding="utf-8")
    print(content, end="")


if __name__ == "__main__":
    main()
