"""Ray Train with one line of lockstep (docs/frameworks.md): who held the workers up is said when their loop ends.

    python examples/frameworks/train_ray.py OUTPUT

It starts Ray on this machine, and two workers.
"""

import itertools
import sys

import ray
import ray.train.torch
import torch
from toy import BATCH, STEPS, Model, SlowData

from lockstep.integrations import ray as lockstep_ray


def train_loop(config):
    model = ray.train.torch.prepare_model(Model())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = ray.train.torch.prepare_data_loader(torch.utils.data.DataLoader(SlowData(1000), BATCH))
    for batch in itertools.islice(loader, config["steps"]):
        optimizer.zero_grad()
        loss = model(**batch)["loss"]
        loss.backward()
        optimizer.step()
    ray.train.report({"loss": loss.item()})


class Tracker(ray.train.UserCallback):
    """Where metrics go that are reported."""

    def after_report(self, run_context, metrics, checkpoint):
        print("Reported:", metrics[0].get("lockstep/verdict", metrics[0]))


def main():
    ray.init(num_cpus=2, include_dashboard=False)
    trainer = ray.train.torch.TorchTrainer(
        lockstep_ray.stages(train_loop),  # This line.
        train_loop_config={"steps": STEPS}, scaling_config=ray.train.ScalingConfig(num_workers=2),
        run_config=ray.train.RunConfig(storage_path=sys.argv[1], name="toy", callbacks=[Tracker()]))
    trainer.fit()


if __name__ == "__main__":
    main()
