"""faulty_training.py with one line before: FOLDER and its arguments."""

import sys

import torch
import lockstep

lockstep.mark("before")  # What is loaded already records from now on, too.
assert "torch" in sys.modules and torch
assert lockstep.enable_stages(sys.argv.pop(1))
assert lockstep.enable_stages()  # Once is enough.

import faulty_training  # noqa: E402

faulty_training.main()
