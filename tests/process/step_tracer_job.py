"""A process that is asked to trace itself, and what it does meanwhile: run by step_tracer_test.py, one case a process.

    step_tracer_job.py CASE FOLDER

FOLDER holds the socket at which a lockstepd of the test's own plays its part, and gets the traces. Says a line of JSON."""

import atexit
import json
import os
import pathlib
import signal
import socket
import sys
import threading
import time

from step_tracer_parts import CASE, FOLDER, HEADER, Daemon, Job, ask_and_train, asked, is_recording, memory, names, tracer as _capture


def main():
    daemon = Daemon()
    assert _capture.enable_captures() and _capture.enable_captures()
    job = Job()
    said = {"case": CASE}
    CASES[CASE](daemon, job, said)
    print(json.dumps(said), flush=True)


def by_steps(daemon, job, said):
    trace = ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=3, PROFILE_START_ITERATION_ROUNDUP=50)
    job.until(trace.exists)
    document = json.loads(trace.read_text())
    first = document["lockstep_first_step"]
    said.update(first=first, steps=names(trace, "ProfilerStep#"), optimizer=names(trace, "Optimizer.step"),
                left=sorted(path.name for path in FOLDER.iterdir() if path.suffix in (".tmp", ".part")))


def by_time(daemon, job, said):
    trace = ask_and_train(daemon, job, "a", ACTIVITIES_DURATION_MSECS=200, ACTIVITIES_WARMUP_PERIOD_SECS=1)
    job.until(trace.exists)
    events = json.loads(trace.read_text())["traceEvents"]
    steps = [event for event in events if event.get("name", "").startswith("ProfilerStep#") and event.get("ph") == "X"]
    said["length_ms"] = (max(event["ts"] + event["dur"] for event in steps) - min(event["ts"] for event in steps)) / 1e3
    said["numbers"] = sorted(int(event["name"].rpartition("#")[2]) for event in steps)
    # And once more, in the same process.
    trace = ask_and_train(daemon, job, "b", ACTIVITIES_ITERATIONS=1)
    job.until(trace.exists)
    said["second"] = names(trace, "ProfilerStep#")


def at_a_time(daemon, job, said):
    start = time.time() + 3
    trace = ask_and_train(daemon, job, "a", ACTIVITIES_DURATION_MSECS=50, PROFILE_START_TIME=int(start * 1000))
    job.until(trace.exists)
    document = json.loads(trace.read_text())
    base = document.get("baseTimeNanoseconds", 0) / 1e9
    begun = min(event["ts"] for event in document["traceEvents"] if event.get("name", "").startswith("ProfilerStep#")) / 1e6 + base
    said["late_s"] = begun - start


def options(daemon, job, said):
    trace = ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=2, PROFILE_REPORT_INPUT_SHAPES="true", PROFILE_WITH_STACK="true",
                          PROFILE_PROFILE_MEMORY="true")
    job.until(trace.exists)
    text = trace.read_text()
    said.update(shapes='"Input Dims"' in text, stacks='"python_function"' in text, memory='"[memory]"' in text)


def own_profiler_before(daemon, job, said):
    job.step()
    own = job.torch.profiler.profile(activities=[job.torch.profiler.ProfilerActivity.CPU])
    own.start()
    result, thread = asked(daemon, "a", ACTIVITIES_ITERATIONS=1)
    job.until(lambda: not thread.is_alive())
    polls = []
    thread = threading.Thread(target=lambda: polls.append(daemon.wait(lambda poll: poll["note"])))
    thread.start()
    job.until(lambda: not thread.is_alive())
    own.stop()
    said["own_events"] = len(own.events())
    said["note"] = polls[0]["note"]
    job.until(result[0].exists)


def own_profiler_within(daemon, job, said):
    trace = ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=1_000_000)
    job.until(is_recording)
    with job.torch.profiler.profile(activities=[job.torch.profiler.ProfilerActivity.CPU]) as own:
        job.step()
    said["own_events"] = len(own.events())
    polls = []
    thread = threading.Thread(target=lambda: polls.append(daemon.wait(lambda poll: poll["note"])))
    thread.start()
    job.until(lambda: not thread.is_alive())
    said.update(note=polls[0]["note"], free=polls[0]["free"], left=sorted(path.name for path in FOLDER.iterdir() if "a_" in path.name))
    assert not trace.exists()
    trace = ask_and_train(daemon, job, "b", ACTIVITIES_ITERATIONS=1)
    job.until(trace.exists)


def taken_back(daemon, job, said):
    ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=1_000_000)
    job.until(is_recording)
    daemon.send(b"lsstop", "other")
    daemon.send(b"lsstop", "a")
    job.until(lambda: _capture._tracer.job is None)
    said.update(note=_capture._tracer.note, left=sorted(path.name for path in FOLDER.iterdir() if "a_" in path.name))
    trace = ask_and_train(daemon, job, "b", ACTIVITIES_ITERATIONS=1)
    job.until(trace.exists)


def taken_back_while_no_step_ends(daemon, job, said):
    job.step()
    daemon.ask("a", ACTIVITIES_ITERATIONS=1)
    assert not daemon.wait(lambda poll: not poll["free"])["free"]
    daemon.send(b"lsstop", "a")
    daemon.wait(lambda poll: poll["free"])
    daemon.ask("b", ACTIVITIES_ITERATIONS=1)
    trace = FOLDER / f"b_{os.getpid()}.json"
    job.until(trace.exists)
    said["left"] = sorted(path.name for path in FOLDER.iterdir() if "a_" in path.name)


def no_folder(daemon, job, said):
    result, thread = asked(daemon, "gone/a", ACTIVITIES_ITERATIONS=1)
    job.until(lambda: not thread.is_alive())
    job.until(lambda: _capture._tracer.note)
    said["note"] = _capture._tracer.note
    trace = ask_and_train(daemon, job, "b", ACTIVITIES_ITERATIONS=1)
    job.until(trace.exists)


def full_disk(daemon, job, said):
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=20)
    job.until(lambda: _capture._tracer.note)
    said.update(note=_capture._tracer.note, left=sorted(path.name for path in FOLDER.iterdir() if "a_" in path.name))


def signal_handler_raises(daemon, job, said):
    """A handler of the job's runs within our code, and what it raises reaches the job."""
    class Stop(BaseException):
        pass

    def handler(*_):
        raise Stop
    signal.signal(signal.SIGUSR1, handler)
    said["raised"] = 0
    profile = job.torch.profiler.profile
    for name in ("prepare_trace", "start_trace", "stop_trace", "export_chrome_trace"):
        for after in (False, True):
            original = getattr(profile, name)

            def interrupted(self, *arguments, name=name, original=original, after=after):
                setattr(profile, name, original)
                if after:
                    original(self, *arguments)
                os.kill(os.getpid(), signal.SIGUSR1)
                time.sleep(0)
                return original(self, *arguments)
            setattr(profile, name, interrupted)
            result, thread = asked(daemon, f"{name}-{after}", ACTIVITIES_ITERATIONS=1)
            try:
                job.until(lambda: not thread.is_alive())
                job.until(lambda: False, limit_s=60)
            except Stop:
                said["raised"] += 1
            while thread.is_alive():
                job.step()
            assert _capture._tracer.job is None and not job.torch.autograd._profiler_enabled(), name
            assert not result[0].exists(), name
            with job.torch.profiler.profile(activities=[job.torch.profiler.ProfilerActivity.CPU]) as own:
                job.step()
            assert own.events(), name
    trace = ask_and_train(daemon, job, "b", ACTIVITIES_ITERATIONS=1)
    job.until(trace.exists)


def scheduled_profiler(daemon, job, said):
    """One of the job's that is only prepared when the request comes, and again and again."""
    torch = job.torch
    traces = []
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=torch.profiler.schedule(wait=1, warmup=2, active=2),
                                on_trace_ready=lambda profile: traces.append(len(profile.events()))) as own:
        result, thread = asked(daemon, "a", ACTIVITIES_ITERATIONS=1)
        while thread.is_alive() or len(traces) < 40:
            job.step()
            own.step()
    said["note"] = "" if result[0].exists() else _capture._tracer.note  # Between two of them there may have been room.
    said["least_events"] = min(traces)
    trace = ask_and_train(daemon, job, "b", ACTIVITIES_ITERATIONS=1)
    job.until(trace.exists)


def own_profiler_elsewhere(daemon, job, said, is_first):
    """The job's own runs in another thread: before ours, or it begins while ours records."""
    torch = job.torch
    begin, end, said_events = threading.Event(), threading.Event(), []

    def elsewhere():
        begin.wait()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
            for _ in range(100):
                torch.ones(8) + 1
            said["begun"] = True
            end.wait()
        said_events.append(len(own.events()))
    side = threading.Thread(target=elsewhere)
    side.start()
    if is_first:
        begin.set()
        job.until(lambda: said.get("begun"))
    trace = ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=1_000_000 if not is_first else 2)
    if is_first:
        job.until(lambda: _capture._tracer.note)
        assert not trace.exists()
        end.set()
        job.until(trace.exists)
    else:
        job.until(is_recording)
        begin.set()
        job.until(lambda: said.get("begun"))
        end.set()
    side.join()
    said.update(note=_capture._tracer.note, own_events=said_events[0])
    trace = ask_and_train(daemon, job, "b", ACTIVITIES_ITERATIONS=1)
    job.until(trace.exists)


def own_profiler_elsewhere_before(daemon, job, said):
    own_profiler_elsewhere(daemon, job, said, True)


def own_profiler_elsewhere_within(daemon, job, said):
    own_profiler_elsewhere(daemon, job, said, False)


def scope_across_traces(daemon, job, said):
    """A record_function that begins within one trace and ends within the next."""
    scope = None
    for i in range(8):
        trace = ask_and_train(daemon, job, f"t{i}", ACTIVITIES_ITERATIONS=20)
        job.until(is_recording)
        if scope is not None:
            scope.__exit__(None, None, None)
        scope = job.torch.profiler.record_function(f"epoch {i}")
        scope.__enter__()
        job.until(trace.exists)
        assert names(trace, "epoch") == [f"epoch {i}"], names(trace, "epoch")
    scope.__exit__(None, None, None)
    events = json.loads(trace.read_text())["traceEvents"]
    said["unfinished"] = sum(event.get("args", {}).get("finished") == "false" for event in events)


def no_thread(daemon, job, said):
    def refuse(_):
        raise RuntimeError("can't start new thread")
    start, threading.Thread.start = threading.Thread.start, refuse
    for _ in range(5):
        job.step()
    threading.Thread.start = start
    said["on"] = _capture._tracer.is_on


def evaluation_by_hand(daemon, job, said, stop):
    """No step ends and no batch is fetched for long: nothing more is recorded."""
    _capture._GRACE_S = 0.5
    trace = ask_and_train(daemon, job, "a", **({"ACTIVITIES_ITERATIONS": 1_000_000} if stop else {"ACTIVITIES_DURATION_MSECS": 100}))
    job.until(is_recording)
    held = _capture._tracer.job.trace
    if stop:
        daemon.send(b"lsstop", "a")
    end = time.monotonic() + 60
    while not held.is_paused and time.monotonic() < end:
        job.torch.ones(8) + 1
    before = memory()
    for _ in range(200_000):
        job.torch.ones(8) + 1
    said.update(paused=held.is_paused, grown_mib=(memory() - before) >> 20)
    job.until(lambda: _capture._tracer.job is None)
    said.update(exists=trace.exists(), recording=job.torch._C._is_torch_function_enabled())
    trace = ask_and_train(daemon, job, "b", ACTIVITIES_ITERATIONS=1)
    job.until(trace.exists)
    said["operators"] = len(names(trace, "aten::"))


def evaluation_without_batches(daemon, job, said):
    evaluation_by_hand(daemon, job, said, False)


def evaluation_and_taken_back(daemon, job, said):
    evaluation_by_hand(daemon, job, said, True)


def forked_worker(daemon, job, said):
    """A worker that is forked within a trace and lives long."""
    trace = ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=1_000_000)
    job.until(is_recording)
    child = os.fork()
    if child == 0:
        before = memory()
        for _ in range(200_000):
            job.torch.ones(8) + 1
        (FOLDER / "grown").write_text(str((memory() - before) >> 20))
        atexit._run_exitfuncs()  # What Python does at its end; before 2.13 Kineto's own end hangs in a forked process.
        os._exit(0)
    os.waitpid(child, 0)
    said.update(grown_mib=int((FOLDER / "grown").read_text()), socket=pathlib.Path(_capture._tracer.socket_path).exists())
    daemon.send(b"lsstop", "a")
    job.until(lambda: _capture._tracer.job is None)
    assert not trace.exists()


def optimizer_in_backward(daemon, job, said):
    """Where no step ends outside of backward the process is left to Kineto."""
    torch = job.torch
    weight = torch.ones(4, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    weight.register_post_accumulate_grad_hook(lambda _: optimizer.step())

    def step():
        (weight * 2).sum().backward()
        time.sleep(0.002)
    job.step = step
    ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=1)
    polls = []
    thread = threading.Thread(target=lambda: polls.append(daemon.wait(lambda poll: poll["note"])))
    thread.start()
    job.until(lambda: not thread.is_alive())
    said.update(note=polls[0]["note"], steps=polls[0]["steps"])


def own_profile_function(daemon, job, said):
    """cProfile, coverage: their function would be lost with Python stacks."""
    sys.setprofile(lambda *_: None)
    ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=1, PROFILE_WITH_STACK="true")
    job.until(lambda: _capture._tracer.note)
    said.update(note=_capture._tracer.note, kept=sys.getprofile() is not None)
    trace = ask_and_train(daemon, job, "b", ACTIVITIES_ITERATIONS=1)
    job.until(trace.exists)
    said["kept_still"] = sys.getprofile() is not None
    sys.setprofile(None)


def asked_again(daemon, job, said):
    """A daemon that was started anew asks for what was served."""
    trace = ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=1)
    job.until(trace.exists)
    written = trace.stat().st_mtime_ns
    ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=1)
    ask_and_train(daemon, job, "b", ACTIVITIES_ITERATIONS=1)
    job.until((FOLDER / f"b_{os.getpid()}.json").exists)
    said["same"] = trace.stat().st_mtime_ns == written


def several_optimizers(daemon, job, said):
    other = job.torch.optim.SGD([job.torch.zeros(1, requires_grad=True)], lr=0.1)
    last = job.step

    def step():
        other.step()
        last()
    job.step = step
    for _ in range(10):
        job.step()
    trace = ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=2)
    job.until(trace.exists)
    said.update(steps=len(names(trace, "ProfilerStep#")),
                optimizer=sum(event.get("name", "").startswith("Optimizer.step") and event.get("ph") == "X"
                              for event in json.loads(trace.read_text())["traceEvents"]))


def forked(daemon, job, said):
    ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=30)
    job.until(is_recording)
    child = os.fork()
    if child == 0:
        try:
            assert not _capture._tracer.is_on and _capture._tracer.job is None
            for _ in range(3):
                job.optimizer.step()
        except BaseException:
            os._exit(1)
        os._exit(0)
    said["child"] = os.waitpid(child, 0)[1]
    trace = FOLDER / f"a_{os.getpid()}.json"
    job.until(trace.exists)
    said["steps"] = len(names(trace, "ProfilerStep#"))


def exits(daemon, job, said):
    trace = ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=1_000_000)
    job.until(is_recording)
    for _ in range(5):
        job.step()
    said["trace"] = str(trace)


def no_step_for_long(daemon, job, said):
    """A validation after the window: its first batch after the limit ends the trace."""
    _capture._GRACE_S = 0.2
    trace = ask_and_train(daemon, job, "a", ACTIVITIES_DURATION_MSECS=100)
    job.until(is_recording)
    loader = job.torch.utils.data.DataLoader(list(range(1000)))
    end = time.monotonic() + 60
    for _ in loader:
        time.sleep(0.05)
        if trace.exists() or time.monotonic() > end:
            break
    said["exists"] = trace.exists()
    said["restored"] = not hasattr(job.torch.utils.data.dataloader._BaseDataLoaderIter.__next__, "__wrapped__")


def other_thread(daemon, job, said):
    """Training in a thread that is not the main one, and another thread that steps an optimizer too."""
    stop = threading.Event()

    def elsewhere():
        optimizer = job.torch.optim.SGD([job.torch.zeros(1, requires_grad=True)], lr=0.1)
        while not stop.is_set():
            optimizer.step()
            time.sleep(0.001)
    side = threading.Thread(target=elsewhere)
    side.start()
    failures = []
    threads = []

    def train():
        try:
            trace = ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=3)
            job.until(trace.exists)
            threads.append(names(trace, "ProfilerStep#"))
        except BaseException as error:
            failures.append(repr(error))
    main_thread = threading.Thread(target=train)
    main_thread.start()
    main_thread.join()
    stop.set()
    side.join()
    said.update(failures=failures, steps=len(threads[0]))


def compiled(daemon, job, said):
    """torch.compile of a step that has an optimizer in it is left as it is."""
    @job.torch.compile(backend="eager")
    def step():
        job.optimizer.step()
    loss = job.model(job.torch.ones(4, 8)).sum()
    loss.backward()
    for _ in range(3):
        step()
    said["compiled"] = True
    trace = ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=1)
    job.until(trace.exists)


def strangers(daemon, job, said):
    """What somebody else sends is not taken, and what makes no sense neither."""
    job.step()
    daemon.wait(lambda poll: True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        text = f"ACTIVITIES_LOG_FILE={FOLDER}/x.json\nREQUEST_TRACE_ID=x\nACTIVITIES_ITERATIONS=1\n"
        other.sendto(HEADER.pack(len(text), b"lsreq") + text.encode(), daemon.address)
    far = f"ACTIVITIES_LOG_FILE={FOLDER}/z.json\nREQUEST_TRACE_ID=\ud800\nACTIVITIES_ITERATIONS=1\nPROFILE_START_TIME={10**30}\n"
    daemon.link.sendto(HEADER.pack(3, b"lsreq") + b"\xff\xfe=", daemon.address)
    for bad in ("", "nonsense", far.replace("\ud800", "z"), "ACTIVITIES_ITERATIONS=one\n", f"ACTIVITIES_LOG_FILE={FOLDER}/y.json\nREQUEST_TRACE_ID=y\n"):
        daemon.send(b"lsreq", bad)
    daemon.link.sendto(b"short", daemon.address)
    daemon.link.sendto(HEADER.pack(5, b"lsreq") + b"longer than that", daemon.address)
    trace = ask_and_train(daemon, job, "a", ACTIVITIES_ITERATIONS=1)
    job.until(trace.exists)
    said["traces"] = sorted(path.name for path in FOLDER.glob("*.json"))


def stale(daemon, job, said):
    _capture._STALE_S = 0.5
    job.step()
    said["steps"] = [daemon.poll()["steps"]]
    said["steps"].append(daemon.wait(lambda poll: not poll["steps"])["steps"])


CASES = {name: value for name, value in list(globals().items()) if callable(value) and getattr(value, "__code__", None) is not None
         and value.__code__.co_varnames[:3] == ("daemon", "job", "said")}

if __name__ == "__main__":
    main()
