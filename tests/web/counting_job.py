"""One rank of a job that counts what it does: gradient descent on a line through noisy points, with the learning rate, the loss and how fast it goes.
RANK says which; rank 1 has the noisier points. With the Python package alone, LOCKSTEP_TRACE says where to."""

import os
import random
import time

import lockstep

STEPS = 200
POINTS = 3000

rank = int(os.environ["RANK"])
choose = random.Random(rank)
slope, offset = 0.0, 0.0
for step in lockstep.steps(range(STEPS)):
    began = time.perf_counter()
    rate = 0.5 / (1 + step / 60)
    with lockstep.trace("load"):
        xs = [choose.uniform(-1, 1) for _ in range(POINTS)]
        ys = [3 * x + 1 + choose.gauss(0, 1 if rank == 1 else 0.3) for x in xs]
    with lockstep.trace("train"):
        errors = [slope * x + offset - y for x, y in zip(xs, ys)]
        slope -= rate * sum(e * x for e, x in zip(errors, xs)) / POINTS
        offset -= rate * sum(errors) / POINTS
    lockstep.counter("loss", sum(e * e for e in errors) / POINTS)
    lockstep.counter("learning rate", rate)
    lockstep.counter("samples per second", POINTS / (time.perf_counter() - began))
