"""Train a small network on scikit-learn's digits with plain PyTorch: DistributedDataParallel under any launch.

    python train_digits.py --epochs 20

It writes an MLflow model and metrics.json into the outputs of the component that runs it.
"""

import argparse
import json
import os
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch_size", type=int, default=32, help="images per rank and step")
    parser.add_argument("--learning_rate", type=float, default=0.005)
    args = parser.parse_args()

    use_gpu = torch.cuda.is_available()
    distributed.init_process_group("nccl" if use_gpu else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if use_gpu else torch.device("cpu")
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    training, test = slice(0, 1400), slice(1400, None)

    network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
    model = DistributedDataParallel(network)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    dataset = TensorDataset(images[training], labels[training])
    sampler = DistributedSampler(dataset)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for batch, target in DataLoader(dataset, args.batch_size, sampler=sampler):
            loss = nn.functional.cross_entropy(model(batch.to(device)), target.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    if distributed.get_rank() == 0:
        network.cpu().eval()
        with torch.no_grad():
            accuracy = (network(images[test]).argmax(1) == labels[test]).float().mean().item()
        print(f"accuracy {accuracy:.4f} on {distributed.get_world_size()} ranks")
        write_results(network, accuracy, images[test][:1])
    distributed.destroy_process_group()


def write_results(network: nn.Module, accuracy: float, example: torch.Tensor) -> None:
    import mlflow

    metrics = Path(os.environ["AZURE_ML_OUTPUT_metrics"])  # noqa: SIM112 - as Azure ML spells it
    metrics.mkdir(parents=True, exist_ok=True)
    (metrics / "metrics.json").write_text(json.dumps({"accuracy": accuracy}))
    mlflow.pytorch.save_model(
        network,
        os.environ["AZURE_ML_OUTPUT_model"],  # noqa: SIM112
        input_example=example.numpy(),
    )


if __name__ == "__main__":
    main()
