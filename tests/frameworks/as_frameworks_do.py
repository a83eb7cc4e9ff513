"""What frameworks do that plain programs do not, in one process and with stand-ins for those that are imported: FOLDER."""

import os
import pathlib
import sys
import time

FOLDER = pathlib.Path(sys.argv[1])
os.environ["LOCKSTEP_TRACE"] = str(FOLDER)
PACKAGES = FOLDER.parent / "packages"
SLEEP_S = 0.002
STEPS = 12

for name, text in {
    "safetensors/torch.py": f"import time\ndef serialize_file(): time.sleep({SLEEP_S})\ndef save_file(): serialize_file()\n",
    "deepspeed/runtime/engine.py": """class DeepSpeedEngine:
    def __init__(self, optimizers): self.optimizers = optimizers
    def step(self): self._take_model_step(None)
    def _take_model_step(self, lr_kwargs):
        for optimizer in self.optimizers * 10: optimizer.step()
""",
}.items():
    path = PACKAGES / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
sys.path.insert(0, str(PACKAGES))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from safetensors.torch import save_file  # noqa: E402  (imported before the hooks are there)

import lockstep  # noqa: E402


class Net(torch.nn.Linear):
    def forward(self, batch):
        time.sleep(SLEEP_S)
        return super().forward(batch)


def train(step_once, net, save):
    for step in range(STEPS):
        net(torch.ones(4, 8)).sum().backward()
        step_once()
        if step >= STEPS // 2:  # When no more modules are looked for.
            net.module.eval()
            with torch.no_grad():
                net.module(torch.ones(4, 8))
            net.module.train()
            save()


def main():
    assert lockstep.enable_stages()
    dist.init_process_group("gloo", init_method=f"file://{FOLDER.parent}/store", rank=0, world_size=1)
    dist.all_reduce(torch.ones(1))
    assert not FOLDER.exists(), "it records before anything is trained"
    net = torch.nn.parallel.DistributedDataParallel(Net(8, 4))
    train(torch.optim.SGD(net.parameters(), lr=1e-3).step, net, save_file)
    from deepspeed.runtime.engine import DeepSpeedEngine  # Which lockstep waits for.

    train(DeepSpeedEngine([torch.optim.SGD(net.parameters(), lr=1e-3)]).step, net, save_file)
    assert "RANK" not in os.environ  # No launcher says it; torch.distributed does.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
