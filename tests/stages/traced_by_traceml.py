"""traced_by_traceml.py PROGRAM ARGUMENT...: a program that has an `around_step` as TraceML (PyPI: traceml-ai) wants a loop that is no
framework's, its steps marked. Under `traceml run`."""

import importlib
import pathlib
import sys

import traceml_ai

traceml_ai.init()
path = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(path.parent))
program = importlib.import_module(path.stem)
program.around_step = traceml_ai.trace_step
program.main()
