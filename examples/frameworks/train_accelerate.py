"""A training loop with Accelerate and one line of lockstep (docs/frameworks.md): who held the ranks up is said when training ends.

    torchrun --nproc-per-node 2 examples/frameworks/train_accelerate.py OUTPUT [TRACKER...]

TRACKER: tensorboard, wandb, mlflow.
"""

import itertools
import sys

import torch
from accelerate import Accelerator
from toy import BATCH, STEPS, Model, SlowData

from lockstep.integrations import accelerate as stages

ACCUMULATED = 2


def main():
    output, *trackers = sys.argv[1:]
    accelerator = Accelerator(cpu=True, log_with=trackers or None, project_dir=output, gradient_accumulation_steps=ACCUMULATED)
    stages.watch(accelerator)  # This line.
    accelerator.init_trackers("toy")
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(SlowData(1000), BATCH)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in itertools.islice(loader, STEPS * ACCUMULATED):
        with accelerator.accumulate(model):
            accelerator.backward(model(**batch)["loss"])
            optimizer.step()
            optimizer.zero_grad()
    accelerator.save_state(f"{output}/state")
    accelerator.end_training()


if __name__ == "__main__":
    main()
