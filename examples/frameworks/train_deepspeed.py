"""DeepSpeed with one line of lockstep (docs/frameworks.md): who held the ranks up is said when the program ends.

    torchrun --nproc-per-node 2 examples/frameworks/train_deepspeed.py OUTPUT [TRACKER...]

On the CPU, with ZeRO stage 1 and two groups of parameters. TRACKER: tensorboard, wandb.
"""

import itertools
import sys

import deepspeed
import torch
from toy import BATCH, STEPS, Model, SlowData

from lockstep.integrations import deepspeed as lockstep_deepspeed


def main():
    output, *trackers = sys.argv[1:]
    torch.distributed.init_process_group("gloo")
    config = {"train_micro_batch_size_per_gpu": BATCH, "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": True,
              "gradient_accumulation_steps": 2}
    for tracker in trackers:
        config[tracker] = {"enabled": True, **({"output_path": output, "job_name": "toy"} if tracker == "tensorboard" else {"project": "toy"})}
    model = Model()
    weights = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    biases = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    optimizer = torch.optim.SGD([{"params": weights, "weight_decay": 1e-2}, {"params": biases}], lr=1e-3)
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=config, dist_init_required=False)
    lockstep_deepspeed.watch(engine)  # This line.
    for batch in itertools.islice(torch.utils.data.DataLoader(SlowData(1000), BATCH), STEPS * 2):
        engine.backward(engine(**batch)["loss"])
        engine.step()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
