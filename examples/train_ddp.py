#!/usr/bin/env python3
"""Trains a small transformer with DistributedDataParallel and records a Kineto trace on every rank.

Run it under torchrun; it needs no GPU (the collectives go over Gloo):

    torchrun --standalone --nproc-per-node 4 examples/train_ddp.py --trace-dir traces --slow-rank 2

One rank can be made slow on purpose, so that there is something to find:

    --slow-kind data      every sample of that rank's DataLoader waits, as on slow storage
    --slow-kind compute   that rank's forward pass multiplies matrices nobody needs
    --slow-kind gc        that rank's garbage collector goes over many objects in every step

Python's garbage collector leaves nothing in a trace by itself. Here gc.callbacks put a range "gc: generation N" around
each collection, which names it; with stacks (--with-stack) a call of gc.collect() shows as well, an automatic collection does not.

With --no-sync no gradients are exchanged: held against the same job with them, that is what communication costs
(lockstep scaling --no-sync).

Each rank writes TRACE_DIR/rank<r>.json.gz: one profiler window of --active-steps steps.
"""

import argparse
import contextlib
import gc
import gzip
import pathlib
import shutil
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, Dataset, DistributedSampler

VOCABULARY = 64


class CountingSequences(Dataset):
    """Token sequences that count up from a start by a stride, modulo the vocabulary: learnable and without a download."""

    def __init__(self, samples, length, delay_s):
        self.samples = samples
        self.length = length
        self.delay_s = delay_s

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        if self.delay_s > 0:
            with record_function("read_sample_from_slow_storage"):
                time.sleep(self.delay_s)
        start, stride = index % VOCABULARY, 1 + index // VOCABULARY % 7
        tokens = (start + stride * torch.arange(self.length + 1)) % VOCABULARY
        return tokens[:-1], tokens[1:]


class Block(nn.Module):
    """Causal self-attention and a two-layer perceptron, each behind a layer norm and a residual."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.perceptron_norm = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.query_key_value(self.attention_norm(x)).chunk(3, dim=-1)
        query, key, value = (p.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for p in parts)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.perceptron(self.perceptron_norm(x))


class Transformer(nn.Module):
    def __init__(self, width, heads, layers, length):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions)))


def burn(seconds):
    """Real work of a given length: matrix products whose result nobody reads."""
    with record_function("unneeded_matrix_products"):
        a = torch.randn(256, 256)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            a = torch.tanh(a @ a)


@contextlib.contextmanager
def recorded_collections():
    """Puts a range in the trace around each run of the garbage collector."""
    running = []

    def callback(phase, info):
        if phase == "start":
            running.append(record_function(f"gc: generation {info['generation']}"))
            running[-1].__enter__()
        elif running:
            running.pop().__exit__(None, None, None)

    gc.callbacks.append(callback)
    try:
        yield
    finally:
        gc.callbacks.remove(callback)


def collect(seconds, objects):
    """Goes over `objects`, which are all in use, for a given time."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        gc.collect()
    return len(objects)


def write_trace(profiler, folder):
    """Writes the window to FOLDER/rank<r>.json.gz, complete or not at all."""
    plain = folder / f"rank{dist.get_rank()}.json"
    profiler.export_chrome_trace(str(plain))
    unfinished = plain.with_suffix(".part")
    with plain.open("rb") as source, gzip.open(unfinished, "wb", compresslevel=9) as target:
        shutil.copyfileobj(source, target)
    unfinished.rename(plain.with_suffix(".json.gz"))
    plain.unlink()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace-dir", type=pathlib.Path, required=True, help="folder for the traces, made if missing")
    parser.add_argument("--active-steps", type=int, default=5, help="steps that are recorded (default 5)")
    parser.add_argument("--skip-steps", type=int, default=3, help="steps before recording starts (default 3)")
    parser.add_argument("--batch", type=int, default=8, help="sequences per rank and step (default 8)")
    parser.add_argument("--length", type=int, default=64, help="tokens per sequence (default 64)")
    parser.add_argument("--width", type=int, default=128, help="width of the model (default 128)")
    parser.add_argument("--heads", type=int, default=4, help="attention heads (default 4)")
    parser.add_argument("--layers", type=int, default=2, help="transformer blocks (default 2)")
    parser.add_argument("--bucket-mb", type=float, default=1.0, help="DDP's bucket size in MB (default 1.0)")
    parser.add_argument("--slow-rank", type=int, default=None, help="the rank to make slow (default: none)")
    parser.add_argument("--slow-ms", type=float, default=60.0, help="how much slower per step, in ms (default 60)")
    parser.add_argument("--slow-kind", choices=("data", "compute", "gc"), default="data", help="what is slow (default data)")
    parser.add_argument("--no-sync", action="store_true", help="do not exchange gradients (ranks then learn apart)")
    parser.add_argument("--record-shapes", action=argparse.BooleanOptionalAction, default=True,
                        help="record the shapes of operators' inputs; a Gloo collective's bytes come from them (default on)")
    parser.add_argument("--with-stack", action="store_true", help="record Python stacks (larger, and names source paths)")
    parser.add_argument("--profile-memory", action="store_true", help="record allocations")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.set_num_threads(1)  # The ranks share one machine; one thread each keeps them out of each other's way.
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    slow_s = arguments.slow_ms / 1e3 if rank == arguments.slow_rank else 0.0
    slow_kind = arguments.slow_kind

    steps = arguments.skip_steps + 1 + arguments.active_steps  # One more to warm the profiler up.
    data = CountingSequences(steps * arguments.batch * world, arguments.length,
                             slow_s / arguments.batch if slow_kind == "data" else 0.0)
    loader = DataLoader(data, arguments.batch, sampler=DistributedSampler(data, world, rank, shuffle=True))
    model = Transformer(arguments.width, arguments.heads, arguments.layers, arguments.length)
    model = DistributedDataParallel(model, bucket_cap_mb=arguments.bucket_mb)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    arguments.trace_dir.mkdir(parents=True, exist_ok=True)
    losses = []
    objects = [[number] for number in range(300_000)] if slow_kind == "gc" and slow_s > 0 else []
    with recorded_collections(), profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=arguments.skip_steps, warmup=1, active=arguments.active_steps, repeat=1),
        on_trace_ready=lambda profiler: write_trace(profiler, arguments.trace_dir),
        record_shapes=arguments.record_shapes,
        with_stack=arguments.with_stack,
        profile_memory=arguments.profile_memory,
    ) as profiler:
        exchange = model.no_sync if arguments.no_sync else contextlib.nullcontext
        for tokens, targets in loader:
            # DDP settles in the forward pass whether the backward pass exchanges.
            with exchange(), record_function("forward"):
                logits = model(tokens)
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
                if slow_kind == "compute" and slow_s > 0:
                    burn(slow_s)
            if objects:
                collect(slow_s, objects)
            with exchange(), record_function("backward"):
                loss.backward()
            with record_function("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.item())
            profiler.step()

    dist.monitored_barrier()  # Not barrier(): its own work may be let go of too late for the end (pytorch/pytorch#190489).
    if rank == 0:
        print(f"{world} ranks, {len(losses)} steps, loss {losses[0]:.3f} -> {losses[-1]:.3f}; "
              f"traces in {arguments.trace_dir}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
