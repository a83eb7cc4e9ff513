"""The module _hooks on the stand-in for CUDA's driver, without PyTorch: what a collective in the job's own stream, a gather of weights, a
functional collective, another stream and a captured graph become. Called by device_test.py, with LOCKSTEP_TRACE, LOCKSTEP_STEPS_HOOKS and LOCKSTEP_FAKE_GPU."""

import ctypes
import importlib.util
import os
import pathlib
import time
from types import SimpleNamespace

CUDA = ctypes.CDLL(str(pathlib.Path(os.environ["LOCKSTEP_FAKE_GPU"], "libcuda.so.1")), mode=ctypes.RTLD_GLOBAL)
FORWARD, COMM = 1, 4  # As python/lockstep/_steps.py numbers them.
PLAIN, WORK_WAIT, SHARD_WAIT, TENSOR_WAIT, ISSUE, GROUP_OF_TENSOR, ISSUE_TENSOR = 0, 1, 5, 6, 7, 9, 10
MS = 1000


class Group:
    """As a process group can be: it is referred to weakly."""


def load_hooks():
    spec = importlib.util.spec_from_file_location("lockstep_run._hooks", os.environ["LOCKSTEP_STEPS_HOOKS"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_stream():
    stream = ctypes.c_void_p()
    CUDA.cuStreamCreate(ctypes.byref(stream), 0)
    return stream


def run_kernel(stream, milliseconds):
    CUDA.FakeCudaKernel(stream, ctypes.c_ulonglong(milliseconds * MS))


def main():
    hooks, main_stream, side_stream, group = load_hooks(), make_stream(), make_stream(), Group()
    current = main_stream

    def nothing(*_arguments):
        return None

    hooks.configure(begin=lambda: hooks.record(os.environ["LOCKSTEP_TRACE"]), lost=print, each_second=nothing, missed=nothing,
                    stepped=lambda _count: hooks.use_device(lambda _device: current.value, 0), choose_module=lambda _module: FORWARD,
                    name_group=lambda _group: "tp[0,1]", find_group=nothing, find_callers_group=nothing, current_task=lambda: -1,
                    wants_gradients=lambda: True, is_on_device=lambda: True, queue_callback=nothing)

    def kernels(milliseconds, stream=None):
        def original(*_arguments):
            run_kernel(stream or current, milliseconds)
            return SimpleNamespace()

        return original

    forward = hooks.around(kernels(10), FORWARD, PLAIN)
    reduce_in_stream = hooks.around(kernels(4), COMM, ISSUE)
    reduce_aside = hooks.around(kernels(6, side_stream), COMM, ISSUE)
    gather = hooks.around(kernels(3), COMM, SHARD_WAIT)
    wait = hooks.around(kernels(2), COMM, WORK_WAIT)
    find_group = hooks.around(lambda: group, COMM, GROUP_OF_TENSOR)
    give_tensor = hooks.around(kernels(6, side_stream), COMM, ISSUE_TENSOR)
    wait_tensor = hooks.around(kernels(5), COMM, TENSOR_WAIT)
    tensor = SimpleNamespace(untyped_storage=lambda: SimpleNamespace(_cdata=4096))
    tensors, in_stream, to_wait_for = [SimpleNamespace(is_cuda=True)], SimpleNamespace(asyncOp=False), SimpleNamespace(asyncOp=True)

    def step(captures=False):
        nonlocal current
        forward((None,), {})
        os.environ["FAKE_CUDA_CAPTURES"] = "1" if captures else "0"
        work = reduce_in_stream((group, tensors, in_stream), {})
        wait((work,), {})  # Nothing is left to be waited for: 2 ms of no stage.
        current = side_stream  # As FSDP gathers: in a stream of its own, whose work is not the step's.
        reduce_in_stream((group, tensors, in_stream), {})
        current = main_stream
        wait((reduce_aside((group, tensors, to_wait_for), {}),), {})
        gather((SimpleNamespace(_all_gather_result=1, _all_gather_process_group=group),), {})
        gather((SimpleNamespace(_all_gather_result=None),), {})  # Nothing is being gathered: 3 ms of no stage.
        find_group((), {})
        give_tensor((tensor,), {})
        wait_tensor((tensor,), {})
        wait_tensor((tensor,), {})  # It is there already: 5 ms of no stage.
        os.environ["FAKE_CUDA_CAPTURES"] = "0"
        hooks.step_ended()

    for number in range(11):
        step(captures=number == 5)
    event = ctypes.c_void_p()
    CUDA.cuEventCreate(ctypes.byref(event), 0)
    CUDA.cuEventRecord(event, main_stream)
    while CUDA.cuEventQuery(event) != 0:
        time.sleep(0.001)
    hooks.resolve_device()
    hooks.around(lambda: None, FORWARD, ISSUE)((), {})  # Whatever the program calls with nothing fails as it would.


if __name__ == "__main__":
    main()
