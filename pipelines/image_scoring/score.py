"""Score images with a model: Azure ML calls init once in each worker, and run with each mini-batch of files."""

import argparse
from pathlib import Path

import mlflow.pytorch
import numpy as np
import pandas as pd
import torch
from PIL import Image


def init():
    global model
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    args, _ = parser.parse_known_args()  # Azure ML adds arguments of its own
    torch.set_num_threads(1)  # there is a worker for each core
    model = mlflow.pytorch.load_model(args.model)


def run(mini_batch):
    arrays = [np.asarray(Image.open(path)) for path in mini_batch]
    pixels = torch.stack([torch.from_numpy(array.reshape(*array.shape[:2], -1)).permute(2, 0, 1) for array in arrays])
    with torch.no_grad():
        probabilities = model(pixels).float().softmax(dim=1)
    best = probabilities.max(dim=1)
    names = [Path(path).name for path in mini_batch]
    return pd.DataFrame({"image": names, "class": best.indices, "probability": best.values})
