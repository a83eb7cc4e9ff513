"""Marks of every kind, by the Python package alone. Prints what it cost."""

import asyncio
import sys
import threading

import lockstep

with lockstep.trace("first"):
    pass
loaded = {"numpy", "torch", "lockstep._native"} & set(sys.modules)
assert not loaded, loaded


@lockstep.trace("function")
def function(x):
    """Adds one."""
    return x + 1


assert function(1) == 2 and function.__name__ == "function" and function.__doc__ == "Adds one."


@lockstep.trace("coroutine")
async def coroutine():
    await asyncio.sleep(0.001)
    return 5


@lockstep.trace("generator")
def generator():
    yield 1
    yield 2


async def both():
    return await asyncio.gather(coroutine(), coroutine())


assert asyncio.run(both()) == [5, 5]
assert list(generator()) == [1, 2]
try:
    with lockstep.trace("raises"):
        raise KeyError("x")
except KeyError:
    pass

for i in lockstep.steps(range(4)):
    lockstep.counter("loss", 1 / (i + 1))
lockstep.step(100)
lockstep.step_end()
lockstep.mark("größer")

again = lockstep.trace("again")
with again, again:
    pass


def work():
    for _ in range(1000):
        with lockstep.trace("threaded"):
            pass


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
for i in range(20):
    try:
        with lockstep.request("generate", parent=parent) as request:
            assert request.traceparent.startswith(parent[:36]), request.traceparent
            with lockstep.linked_trace("prefill", parent=request.traceparent) as span:
                assert span.traceparent.startswith(parent[:36])
            if i % 10 == 9:
                raise RuntimeError
            for _ in range(3):
                request.output(2)
    except RuntimeError:
        pass

for wrong in ((), (3,), ("a", "b")):
    try:
        lockstep.trace(*wrong)
    except TypeError:
        continue
    raise AssertionError(wrong)
print("done")
