"""Lightning's Trainer with one line of lockstep (docs/frameworks.md): who held the ranks up is said when training ends.

    python examples/frameworks/train_lightning.py OUTPUT [TRACKER...]

It starts two ranks itself. TRACKER: tensorboard, wandb, mlflow.
"""

import sys

import lightning
import torch
from lightning.pytorch import loggers
from toy import BATCH, STEPS, Model, SlowData

from lockstep.integrations.lightning import StagesCallback


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = Model()

    def training_step(self, batch):
        return self.model(**batch)["loss"]

    def validation_step(self, batch):
        self.log("validation", self.model(**batch)["loss"], sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


def main():
    output, *names = sys.argv[1:]
    makers = {"tensorboard": lambda: loggers.TensorBoardLogger(output), "wandb": lambda: loggers.WandbLogger(save_dir=output),
              "mlflow": lambda: loggers.MLFlowLogger(tracking_uri=f"sqlite:///{output}/mlflow.db")}
    trainer = lightning.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_steps=STEPS, val_check_interval=10, logger=[makers[name]() for name in names],
        default_root_dir=output, enable_progress_bar=False,
        callbacks=[StagesCallback()])  # This line.
    trainer.fit(Module(), torch.utils.data.DataLoader(SlowData(1000), BATCH), torch.utils.data.DataLoader(SlowData(16), BATCH))


if __name__ == "__main__":
    main()
