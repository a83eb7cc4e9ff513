#!/usr/bin/env python3
"""Writes the seed inputs of the fuzz targets to fuzz/corpus/. Everything in them is made up in fuzz/seeds/.

Run it after changing a seed; inputs that fuzzing found and that are kept for good are named found_... and are
left alone.
"""
import pathlib
import runpy
import sys

SEEDS = pathlib.Path(__file__).parent / "seeds"
HELPERS = {"corpus.py", "kineto_text.py"}

sys.dont_write_bytecode = True
sys.path.insert(0, str(SEEDS))
for subject in sorted(SEEDS.glob("*.py")):
    if subject.name not in HELPERS:
        runpy.run_path(str(subject))
