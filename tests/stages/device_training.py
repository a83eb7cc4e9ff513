"""faulty_training.py where the stand-in for CUDA's driver is the device: forward, backward and the optimizer put kernels in a stream and go
on, and the gradients' all-reduce is one of the stand-in for NCCL in a stream of its own, for which the first one waits. What PyTorch's
build for CUDA would do of this is put in its place here. LOCKSTEP_FAKE_GPU: the folder of the two libraries.
MARKS_OPTIMIZER in the environment: the program marks what its optimizer does, as the stage h2d.
"""

import collections
import contextlib
import ctypes
import os
import pathlib
import time

import torch
import torch.distributed as dist

import faulty_training

GPU = pathlib.Path(os.environ["LOCKSTEP_FAKE_GPU"])
CUDA = ctypes.CDLL(str(GPU / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
NCCL = ctypes.CDLL(str(GPU / "libnccl.so.2"))
MOST_STEPS_AHEAD = 2
FLOAT, SUM = 7, 0  # ncclDataType_t, ncclRedOp_t
DEVICE_STAGES = ("forward", "backward", "optimizer")


class Identity(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def check(status):
    if status != 0:
        raise RuntimeError(f"the stand-in gave {status}")


def make(function):
    handle = ctypes.c_void_p()
    check(function(ctypes.byref(handle), 0))
    return handle


class Device:
    def __init__(self):
        self.stream = make(CUDA.cuStreamCreate)
        self.steps = collections.deque()  # Events at their ends.
        self.all_reduces = []  # Whose memory it uses.

    def kernel(self, seconds):
        CUDA.FakeCudaKernel(self.stream, ctypes.c_ulonglong(round(seconds * 1e6)))

    def end_step(self):
        event = make(CUDA.cuEventCreate)
        check(CUDA.cuEventRecord(event, self.stream))
        self.steps.append(event)
        self.wait(MOST_STEPS_AHEAD)  # As where a loss is printed.

    def wait(self, steps_ahead):
        while len(self.steps) > steps_ahead:
            while CUDA.cuEventQuery(self.steps[0]) != 0:
                time.sleep(0.0005)
            self.steps.popleft()


class AllReduce:
    """Of all gradients: in a stream of its own, once backward has come to its end on the device."""

    def __init__(self, device):
        self.device = device
        self.stream = make(CUDA.cuStreamCreate)
        self.ready, self.done = make(CUDA.cuEventCreate), make(CUDA.cuEventCreate)
        self.memory = ctypes.create_string_buffer(4096)
        identity = Identity()
        check(NCCL.ncclGetUniqueId(ctypes.byref(identity)))
        told = torch.tensor(list(bytes(identity)), dtype=torch.uint8)
        dist.broadcast(told, 0)
        identity = Identity.from_buffer_copy(bytes(told.tolist()))
        self.communicator = ctypes.c_void_p()
        check(NCCL.ncclCommInitRank(ctypes.byref(self.communicator), dist.get_world_size(), identity, dist.get_rank()))

    def hook(self, _state, bucket):
        check(CUDA.cuEventRecord(self.ready, self.device.stream))
        check(CUDA.cuStreamWaitEvent(self.stream, self.ready, 0))
        check(NCCL.ncclAllReduce(self.memory, self.memory, ctypes.c_size_t(64), FLOAT, SUM, self.communicator, self.stream))
        check(CUDA.cuEventRecord(self.done, self.stream))
        # Behind DistributedDataParallel's own, which on a GPU makes the stream wait.
        torch.autograd.Variable._execution_engine.queue_callback(lambda: check(CUDA.cuStreamWaitEvent(self.device.stream, self.done, 0)))
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future


def main():
    torch.cuda._initialized = True
    torch.cuda.current_device = lambda: 0
    device = Device()
    torch._C._cuda_getCurrentRawStream = lambda _device: device.stream.value
    around_optimizer = contextlib.nullcontext
    if "MARKS_OPTIMIZER" in os.environ:
        import lockstep

        def around_optimizer():
            return lockstep.stage("h2d")

    on_host = faulty_training.Fault.sleep

    def sleep(fault, stage, usual_s=0.0):
        if stage not in DEVICE_STAGES:
            return on_host(fault, stage, usual_s)
        with around_optimizer() if stage == "optimizer" else contextlib.nullcontext():
            device.kernel(usual_s + (fault.seconds if fault.is_due(stage) else 0.0))
        if stage == "optimizer":
            device.end_step()
        return None

    class OnDevice(torch.nn.parallel.DistributedDataParallel):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            device.all_reduces.append(AllReduce(device))
            self.register_comm_hook(None, device.all_reduces[-1].hook)

    faulty_training.Fault.sleep = sleep
    torch.nn.parallel.DistributedDataParallel = OnDevice
    faulty_training.main()
    device.wait(0)


if __name__ == "__main__":
    main()
