"""lockstep.bench whose all_reduce leaves one wrong element on rank WRONG_RANK where there are more than two, and where rank REFUSING_RANK cannot begin one."""

import os
import sys

import torch.distributed as dist

import lockstep.bench

real_all_reduce = dist.all_reduce


def all_reduce(tensor, **options):
    rank = str(dist.get_rank())
    if rank == os.environ.get("REFUSING_RANK") and tensor.numel() > 1000:
        raise RuntimeError("the cable is out")
    real_all_reduce(tensor, **options)
    if rank == os.environ.get("WRONG_RANK") and tensor.numel() > 2:
        tensor[1] += 1


dist.all_reduce = all_reduce
sys.exit(lockstep.bench.main())
