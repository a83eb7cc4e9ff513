"""Hugging Face's Trainer with one line of lockstep (docs/frameworks.md): who held the ranks up is said when training ends.

    torchrun --nproc-per-node 2 examples/frameworks/train_transformers.py OUTPUT [TRACKER...]

TRACKER: tensorboard, wandb, mlflow.
"""

import sys

from toy import BATCH, STEPS, Model, SlowData
from transformers import Trainer, TrainingArguments

from lockstep.integrations.transformers import StagesCallback


def main():
    arguments = TrainingArguments(
        output_dir=sys.argv[1], max_steps=STEPS, per_device_train_batch_size=BATCH, use_cpu=True, report_to=sys.argv[2:] or "none",
        logging_steps=10, save_steps=10, eval_strategy="steps", eval_steps=10, disable_tqdm=True)
    trainer = Trainer(
        Model(), arguments, train_dataset=SlowData(1000), eval_dataset=SlowData(16),
        callbacks=[StagesCallback()])  # This line.
    trainer.train()


if __name__ == "__main__":
    main()
