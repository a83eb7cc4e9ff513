"""examples/frameworks on the frameworks themselves: each says which rank is slow and in what, and its trackers have what lockstep says."""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

from pytorch import job_environment, torchrun

from lockstep.integrations import trackers

SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
EXAMPLES = SOURCE / "examples/frameworks"
STEPS = 30  # Of toy.py.
PATIENCE_S = 900  # DeepSpeed compiles what it uses, once.
TRACKERS = ("tensorboard", "wandb", "mlflow")


def in_tensorboard(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found, texts = {}, {}
    for path in {path.parent for path in folder.rglob("events.out.tfevents.*")}:
        events = EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0}).Reload()
        for name in events.Tags()["scalars"]:
            found[name] = {event.step: event.value for event in events.Scalars(name)}
        for name in events.Tags()["tensors"]:
            texts[name.removesuffix("/text_summary")] = events.Tensors(name)[0].tensor_proto.string_val[0].decode()
    return found, texts


def wandb_records(path):
    """Of a run that was offline: blocks as LevelDB's logs have them, behind a header of 7 bytes."""
    from wandb.proto import wandb_internal_pb2

    data = path.read_bytes()
    assert data[:4] == b":W&B"
    at, whole = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # Whole, or the last part.
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            whole = b""
            yield record


def in_wandb(folder):
    found, totals = {}, {}
    (path,) = folder.rglob("*.wandb")
    for record in wandb_records(path):
        history = {item.key or item.nested_key[-1]: json.loads(item.value_json) for item in record.history.item}
        if "lockstep/step" in history:
            for name, value in history.items():
                found.setdefault(name, {})[history["lockstep/step"]] = value
        totals.update({item.key or item.nested_key[-1]: json.loads(item.value_json) for item in record.summary.update})
    last = max(found["lockstep/step"])
    found.update({name: {last: value} for name, value in totals.items() if name.startswith("lockstep/summary/")})
    return found, totals


def in_mlflow(uri):
    import mlflow

    client = mlflow.MlflowClient(uri)
    (run,) = client.search_runs([each.experiment_id for each in client.search_experiments()])
    found = {name: {point.step: point.value for point in client.get_metric_history(run.info.run_id, name)} for name in run.data.metrics}
    return found, {name.replace(".", "/"): value for name, value in run.data.tags.items()}


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkt-", dir="/tmp", ignore_cleanup_errors=True)  # Ray's helpers end a little later.
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "out").mkdir()

    def example(self, name, *names, launcher=True, seen=(), **variables):
        """The summary, and what was printed."""
        words = [EXAMPLES / f"train_{name}.py", self.folder / "out", *names]
        command = torchrun(sys.executable, 2, *words) if launcher else [sys.executable, *words]
        environment = job_environment(**{
            "PYTHONPATH": f"{os.environ['LOCKSTEP_BUILD']}/python", "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "1", "WANDB_MODE": "offline", "WANDB_DIR": str(self.folder), "HF_HUB_OFFLINE": "1",
            "MLFLOW_TRACKING_URI": f"sqlite:///{self.folder}/out/mlflow.db", "TORCH_EXTENSIONS_DIR": f"{sys.prefix}/torch_extensions",
            "DS_ACCELERATOR": "cpu", "RAY_USAGE_STATS_ENABLED": "0", **variables})
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment, cwd=self.folder,
                              timeout=PATIENCE_S, check=False)
        printed = done.stdout + done.stderr
        self.assertEqual(0, done.returncode, printed)
        said = [line[line.index("lockstep: ") :] for line in printed.splitlines() if "lockstep: " in line]
        print(f"{name}: {said[0] if said else 'nothing'}", flush=True)
        summary = json.loads((self.folder / "lockstep-stages/summary.json").read_text(encoding="utf-8"))
        data = summary["data"]
        self.assertEqual([f"lockstep: {data['verdict']['sentence']}", f"lockstep: lockstep stages {self.folder / 'lockstep-stages'}"],
                         [said[0], said[-1]], printed)
        self.assertEqual(("straggler", 1, "input"), tuple(data["verdict"][key] for key in ("answer", "rank", "stage")), printed)
        self.assertEqual((STEPS, [0, 1], []), (data["step_count"], [row["rank"] for row in data["ranks"]], summary["ledger"]))
        spent = {row["stage"]: row["rank_ns"] for row in data["stages"]}
        for stage in ("input", "forward", "backward", "optimizer", "comm_exposed"):
            self.assertGreater(min(spent[stage]), 0, (stage, spent))
        for stage in ("checkpoint", "validation"):
            (self.assertGreater if stage in seen else self.assertEqual)(spent[stage][0], 0, (stage, spent))
        return summary, printed

    def check(self, summary, found, texts):
        wanted = {}
        for window in trackers.windows(summary):
            for name, value in window.values.items():
                wanted.setdefault(name, {})[window.last_step] = value
        wanted.update({name: {STEPS - 1: value} for name, value in trackers.summary_scalars(summary).items()})
        self.assertGreater(len(wanted["lockstep/step_ms"]), 20)
        for name, points in wanted.items():
            self.assertEqual(list(points), list(found[name]), name)
            for step, value in points.items():
                self.assertAlmostEqual(value, found[name][step], delta=1e-6 * abs(value) + 1e-9, msg=name)
        for name, text in trackers.summary_texts(summary).items():
            self.assertEqual(text, texts[name])

    def test_transformers(self):
        uri = f"file://{self.folder}/out/mlruns"
        summary, _ = self.example("transformers", *TRACKERS, seen=("checkpoint", "validation"), MLFLOW_ALLOW_FILE_STORE="true", MLFLOW_TRACKING_URI=uri)
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
        self.check(summary, *in_tensorboard(self.folder))
        self.check(summary, *in_wandb(self.folder))
        self.check(summary, *in_mlflow(uri))

    def test_lightning(self):
        summary, _ = self.example("lightning", *TRACKERS, launcher=False, seen=("checkpoint", "validation"))
        self.check(summary, *in_tensorboard(self.folder))
        self.check(summary, *in_wandb(self.folder))
        self.check(summary, *in_mlflow(f"sqlite:///{self.folder}/out/mlflow.db"))

    def test_accelerate(self):
        summary, _ = self.example("accelerate", *TRACKERS)
        self.check(summary, *in_tensorboard(self.folder))
        self.check(summary, *in_wandb(self.folder))
        self.check(summary, *in_mlflow(f"sqlite:///{self.folder}/out/mlflow.db"))

    def test_ray(self):
        summary, printed = self.example("ray", launcher=False)
        self.assertIn(f"Reported: {summary['data']['verdict']['sentence']}", printed)

    def test_deepspeed(self):
        summary, _ = self.example("deepspeed", "tensorboard", "wandb")
        self.check(summary, *in_tensorboard(self.folder))
        self.check(summary, *in_wandb(self.folder))


if __name__ == "__main__":
    unittest.main()
