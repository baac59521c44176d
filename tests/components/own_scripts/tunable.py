"""A DeepSpeed training for the autotuner: it takes --deepspeed_config, and makes a few steps."""

import argparse

import deepspeed
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
parser = deepspeed.add_config_arguments(parser)
args = parser.parse_args()
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
engine, *_ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
for _ in range(6):
    size = engine.train_micro_batch_size_per_gpu()
    loss = engine(torch.randn(size, 8)).square().mean()
    engine.backward(loss)
    engine.step()
