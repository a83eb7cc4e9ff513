"""What the examples of this folder train: a tiny model, on data that one rank reads slowly."""

import time

import torch

STEPS = 30
BATCH = 8
SLOW_RANK = 1
READ_S = 0.01  # A sample; 80 ms a batch on the slow rank, more than what a busy machine adds anywhere, and nothing elsewhere.


class SlowData(torch.utils.data.Dataset):
    """Samples of a regression."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if torch.distributed.is_initialized() and torch.distributed.get_rank() == SLOW_RANK:
            time.sleep(READ_S)
        return {"x": torch.full((16,), float(index % 7)), "labels": torch.tensor([float(index % 3)])}


class Model(torch.nn.Module):
    """Its loss, as Hugging Face's models give it."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, x, labels=None):
        y = self.layers(x)
        return {"loss": torch.nn.functional.mse_loss(y, labels), "logits": y}
