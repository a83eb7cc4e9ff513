"""faulty_training.py as TraceML (PyPI: traceml-ai) wants a loop that is no framework's: its steps are marked. Under `traceml run`."""

import faulty_training
import traceml_ai

traceml_ai.init()
faulty_training.around_step = traceml_ai.trace_step
faulty_training.main()
