"""Training loops of one process, each in a child of its own: FOLDER. A line of JSON each: what it is, its process, the turns of its
loop, and what it has learnt. Knows nothing of lockstep."""

import json
import os
import signal
import sys

import torch
from torch import nn

TURNS = 20


def nets(count):
    torch.manual_seed(5)
    return [nn.Linear(4, 4) for _ in range(count)]


def turn(net, optimizer, scale=1.0):
    loss = net(torch.randn(2, 4)).square().sum() * scale
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def sgd(net):
    return torch.optim.SGD(net.parameters(), 0.01)


def one_optimizer():
    [net] = nets(1)
    optimizer = sgd(net)
    for _ in range(TURNS):
        turn(net, optimizer)
    return TURNS, [net]


def two_in_turn():
    one, other = nets(2)
    optimizers = sgd(one), torch.optim.Adam(other.parameters())
    for _ in range(TURNS):
        turn(one, optimizers[0])
        turn(other, optimizers[1])
    return TURNS, [one, other]


def nine_in_turn():
    several = nets(9)
    optimizers = [sgd(net) for net in several]
    for _ in range(TURNS):
        for net, optimizer in zip(several, optimizers):
            turn(net, optimizer)
    return TURNS, several


def second_now_and_then():
    one, other = nets(2)
    optimizers = sgd(one), sgd(other)
    for i in range(TURNS):
        turn(one, optimizers[0])
        if i % 5 == 4:
            turn(other, optimizers[1])
    return TURNS, [one, other]


def accumulated_gradients():
    [net] = nets(1)
    optimizer = sgd(net)
    for i in range(4 * TURNS):
        net(torch.randn(2, 4)).square().sum().backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    return TURNS, [net]


def new_optimizer_each_epoch():
    [net] = nets(1)
    for _ in range(TURNS // 5):
        optimizer = sgd(net)
        for _ in range(5):
            turn(net, optimizer)
        del optimizer
    return TURNS, [net]


def scaler_that_skips():
    [net] = nets(1)
    optimizer = sgd(net)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    skipped = 0
    for i in range(TURNS):
        batch = torch.randn(2, 4)
        if i % 3 == 0:
            batch[0, 0] = float("inf")
        scaler.scale(net(batch).sum()).backward()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped += scaler.get_scale() < before
        optimizer.zero_grad()
    assert skipped == 7, skipped
    return TURNS, [net]


def steps_that_raise():
    [net] = nets(1)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.01, max_iter=2)

    def wrong():
        raise KeyError("no")

    def loss():
        optimizer.zero_grad()
        value = net(torch.ones(2, 4)).square().sum()
        value.backward()
        return value

    for _ in range(TURNS):
        try:
            optimizer.step(wrong)
        except KeyError:
            pass
        optimizer.step(loss)
    return TURNS, [net]


def compiled():
    [net] = nets(1)
    optimizer = sgd(net)
    forward = torch.compile(lambda batch: net(batch).square().sum(), backend="eager", fullgraph=True)
    for _ in range(TURNS):
        forward(torch.randn(2, 4)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return TURNS, [net]


def a_call_of_its_own():
    class Doubles(nn.Linear):
        def __call__(self, batch):
            return 2 * super().__call__(batch)

    class Net(Doubles):
        pass

    torch.manual_seed(5)
    net = Net(4, 4)
    optimizer = sgd(net)
    batch = torch.ones(2, 4)
    for _ in range(TURNS):
        assert torch.equal(net(batch), 2 * net.forward(batch))
        turn(net, optimizer)
    return TURNS, [net]


def interrupted_within_a_hook():
    """What a handler of a signal raises is the program's, wherever it comes."""

    class Stop(BaseException):
        pass

    class Net(nn.Linear):
        is_armed = False

        @property
        def training(self):  # Which a hook reads that asks whether this validates.
            if self.is_armed:
                self.is_armed = False
                signal.raise_signal(signal.SIGUSR1)
            return True

        @training.setter
        def training(self, _):
            pass

    def stop(*_):
        raise Stop

    signal.signal(signal.SIGUSR1, stop)
    net = Net(4, 4)
    optimizer = sgd(net)
    stopped = 0
    for _ in range(TURNS):
        turn(net, optimizer)
        net.is_armed = True
        try:
            with torch.no_grad():
                net(torch.ones(2, 4))
        except Stop:
            stopped += 1
    assert stopped == TURNS, stopped
    return TURNS, [net]


def another_takes_over():
    one, other = nets(2)
    first, second = sgd(one), sgd(other)
    for i in range(TURNS):
        turn(one, first) if i < TURNS / 2 else turn(other, second)
    return TURNS - 1, [one, other]  # That the first one has stopped shows when the second one steps again.


def without_the_hooks():
    os.environ["LOCKSTEP_STEPS_HOOKS"] = "/nowhere/_hooks.abi3.so"
    os.execv(sys.executable, [sys.executable, __file__, "once"])


def report(name, turns, learnt):
    values = [parameter.tolist() for net in learnt for parameter in net.parameters()]
    print(json.dumps({"loop": name, "pid": os.getpid(), "turns": turns, "learnt": repr(values)}), flush=True)


def main():
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        report("without_the_hooks", 0, one_optimizer()[1])
        return
    for loop in (one_optimizer, two_in_turn, nine_in_turn, second_now_and_then, accumulated_gradients, new_optimizer_each_epoch,
                 scaler_that_skips, steps_that_raise, compiled, a_call_of_its_own, interrupted_within_a_hook, another_takes_over, without_the_hooks):
        child = os.fork()
        if child == 0:
            report(loop.__name__, *loop())
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            sys.exit(f"{loop.__name__}: {status}")


if __name__ == "__main__":
    main()
