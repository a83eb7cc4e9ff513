"""The folders of src/ are the data flow: an #include may only point along it (docs/architecture.md has the same table)."""

import os
import pathlib
import re
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))

# Layer -> layers whose headers it may name, itself aside. Folders below a layer belong to it.
MAY_INCLUDE = {
    "base": set(),
    "launchers": set(),
    "exposition": {"base"},
    "model": {"base"},
    "logs/line": {"base"},
    "logs/write": {"logs/line", "base"},
    "logs/read": {"logs/line", "logs/write", "ingest/rank_log", "ingest/bytes", "model", "base"},
    "report/logs": {"logs/read", "logs/line", "report", "base"},
    "graph": {"base"},
    "launch": {"launchers", "base"},
    "instrument/logger": {"logs/write", "logs/line", "launch", "base"},
    "mpi_check": {"mpi"},
    "mpi_bench": {"nccl_bench", "mpi", "bench_program", "collective_bench", "base"},
    "nccl_bench": {"rendezvous", "bench_program", "launch", "collective_bench", "base"},
    "rendezvous": {"launch", "base"},
    "bench_program": {"page/fabric", "ingest/bench_results", "model", "report/collective_bench", "collective_bench", "base"},
    "collective_bench": {"analysis", "base"},
    "report/collective_bench": {"collective_bench", "report", "base"},
    "mpi": {"launchers", "cli", "comparison", "analysis", "ingest/evidence", "ingest/job", "model", "base"},
    "evidence": {"base"},
    "ingest/flight_recorder": {"evidence", "base"},
    "ingest/rank_log": {"logs/line", "evidence", "base"},
    "ingest/stacks": {"evidence", "base"},
    "ingest/nccl": {"ingest/bytes", "evidence", "model", "base"},
    "instrument/process": {"launchers"},
    "instrument/nccl_profiler": {"instrument/process"},
    "ingest/nccl_ring": {"instrument/nccl_profiler", "evidence", "base"},
    "ingest/bench_results": {"ingest/bytes", "model", "base"},
    "ingest/kernel_profile": {"ingest/bytes", "model", "base"},
    "ingest/evidence": {"ingest/flight_recorder", "ingest/nccl_ring", "ingest/rank_log", "ingest/stacks", "ingest/nccl", "ingest/bytes", "evidence", "model", "base"},
    "hang": {"evidence", "base"},
    "live_site": {"top", "live", "serve", "page/hang", "page", "report/hang", "report", "hang", "analysis", "ingest/evidence", "ingest/job", "model", "control/client",
                  "control/api", "http", "base"},
    "report/hang": {"report", "hang", "evidence", "model", "base"},
    "report/nccl": {"report", "evidence", "model", "base"},
    "report/kernel_profile": {"report", "analysis", "model", "base"},
    "page/kernel_profile": {"report/kernel_profile", "page", "report", "analysis", "model", "base"},
    "page/fabric": {"page", "report", "model", "base"},
    "page/nccl": {"report/nccl", "page", "report", "evidence", "base"},
    "page/hang": {"report/hang", "page", "report", "hang", "evidence", "base"},
    "proc": {"launchers", "control/api", "base"},
    "proc/rings": {"ingest/nccl_ring", "base"},
    "inspect": {"proc/rings", "proc", "ingest/nccl_ring", "ingest/stacks", "control/api", "evidence", "base"},
    "ingest/bytes": {"model", "base"},
    "ingest/torch_trace": {"ingest/bytes", "model", "base"},
    "ingest/perfetto": {"ingest/torch_trace", "ingest/bytes", "model", "base"},
    "ingest/nsight": {"launchers", "ingest/torch_trace", "ingest/bytes", "model", "base"},
    "ingest/op_trace": {"ingest/torch_trace", "ingest/bytes", "model", "base"},
    "instrument/trace": {"instrument/process", "base"},
    "ingest/span_trace": {"ingest/torch_trace", "ingest/bytes", "model", "base"},
    "ingest/span_follow": {"ingest/span_trace", "base"},
    "ingest/nccl_trace": {"ingest/nccl_ring", "ingest/torch_trace", "ingest/bytes", "model", "base"},
    "ingest/job": {"ingest/kernel_profile", "ingest/op_trace", "ingest/nccl_trace", "ingest/nccl_ring", "ingest/span_trace", "ingest/nsight", "ingest/perfetto", "ingest/torch_trace", "ingest/bytes", "model", "base"},
    "analysis": {"graph", "model", "base"},
    "comparison": {"analysis", "model", "base"},
    "profile_history": {"comparison", "analysis", "evidence", "base"},
    "report": {"comparison", "analysis", "model", "base"},
    "page": {"report", "analysis", "model", "base"},
    "http": {"base"},
    "serve": {"http", "page", "report", "analysis", "model", "base"},
    "control/api": {"evidence", "base"},
    "control/discovery": {"control/api", "base"},
    "control/client": {"control/discovery", "control/api", "evidence", "base"},
    "live": {"exposition", "control/client", "control/api", "base"},
    "top": {"live", "report", "base"},
    "agent/kineto": {"proc", "control/api", "base"},
    "agent/capture": {"agent/kineto", "control/api", "base"},
    "agent/network": {"agent/capture", "control/api", "base"},
    "agent/sensors": {"base"},
    "agent/history": {"agent/sensors", "control/api", "base"},
    "agent/job_metrics": {"agent/sensors", "ingest/span_follow", "proc", "base"},
    "agent/engines": {"agent/sensors", "proc", "exposition", "base"},
    "agent/log_metrics": {"agent/sensors", "proc", "ingest/rank_log", "logs/line", "evidence", "base"},
    "agent/gpu": {"agent/sensors", "base"},
    "agent/host": {"agent/sensors", "proc", "base"},
    "agent/nccl_metrics": {"agent/sensors", "proc/rings", "proc", "ingest/nccl_ring", "base"},
    "agent/dynolog": {"agent/capture", "agent/kineto", "control/api", "base"},
    "agent/daemon": {"agent/engines", "agent/log_metrics", "agent/gpu", "agent/history", "agent/host", "agent/job_metrics", "agent/nccl_metrics", "agent/sensors", "inspect", "proc", "evidence", "agent/network", "agent/dynolog", "agent/capture", "agent/kineto", "control/api", "http", "base"},
    "export/tensorboard": {"report", "analysis", "model", "base"},
    "export/live": {"export/tensorboard", "live", "report", "base"},
    "export/otlp": {"report", "model", "base"},
    "export/flame": {"report", "analysis", "model", "base"},
    "cli": {"profile_history", "ingest/bench_results", "page/fabric", "report/logs", "logs/read", "logs/write", "logs/line", "bench_program", "collective_bench", "inspect", "proc", "launch", "page/hang", "page/kernel_profile", "page/nccl", "report/hang", "report/kernel_profile", "report/nccl", "hang", "ingest/evidence", "ingest/kernel_profile", "ingest/nccl", "evidence", "live_site", "top", "live", "control/client", "control/discovery", "control/api", "export/tensorboard", "export/flame", "export/otlp", "export/live", "serve", "http", "query", "export/timeline", "page", "report", "comparison", "analysis", "ingest/job", "ingest/torch_trace", "ingest/bytes", "model", "base"},
    "export/timeline": {"analysis", "model", "base"},
    "python": {"bench_program", "collective_bench", "comparison", "query", "page", "report", "analysis", "ingest/job", "ingest/torch_trace", "ingest/bytes", "model", "base"},
    "query": {"report", "analysis", "model", "base"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layer_of(path):
    """The layer that a path relative to src/ lies in; None when it lies in none."""
    parts = pathlib.PurePosixPath(path).parts
    for length in (2, 1):
        name = "/".join(parts[:length])
        if len(parts) > length and name in MAY_INCLUDE:
            return name
    return None


def wrong_include(root, layer, quote, target):
    """What is wrong with this #include in a file of `layer`, or None."""
    aim = layer_of(target)
    if quote == "<":
        return f"<{target}> is ours, so it is written in quotes" if aim else None
    if target.startswith(".") or aim is None:
        return f'"{target}" is not a path from src/ to a layer'
    if aim != layer and aim not in MAY_INCLUDE[layer]:
        return f"{layer} may not include {aim} ({target})"
    if not (root / target).is_file():
        return f'"{target}" does not exist'
    return None


def violations(root):
    """Every wrong #include under `root`, and every source file whose folder is in no layer."""
    found = []
    for path in sorted(root.rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        name = path.relative_to(root).as_posix()
        layer = layer_of(name)
        if layer is None:
            found.append(f"src/{name}: its folder is not a layer of the table in include_direction_test.py")
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            wrong = match and wrong_include(root, layer, match[1], match[2])
            if wrong:
                found.append(f"src/{name}:{number}: {wrong}")
    return found


class IncludeDirectionTest(unittest.TestCase):
    def test_every_include_points_along_the_data_flow(self):
        self.assertEqual([], violations(SOURCE / "src"))

    def test_every_layer_of_the_table_exists(self):
        self.assertEqual([], [layer for layer in MAY_INCLUDE if not (SOURCE / "src" / layer).is_dir()])

    def test_the_table_has_no_cycle(self):
        for layer in MAY_INCLUDE:
            seen, to_visit = set(), list(MAY_INCLUDE[layer])
            while to_visit:
                below = to_visit.pop()
                self.assertNotEqual(layer, below)
                if below not in seen:
                    seen.add(below)
                    to_visit += MAY_INCLUDE[below]


class ViolationsTest(unittest.TestCase):
    """The check finds what it is there to find."""

    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            return violations(root)

    def test_an_arrow_that_points_back_is_found(self):
        found = self.check({"model/run.h": '#include "analysis/idle.h"\n', "analysis/idle.h": ""})
        self.assertEqual(["src/model/run.h:1: model may not include analysis (analysis/idle.h)"], found)

    def test_analysis_does_not_know_ingest(self):
        found = self.check({"analysis/a.cc": '\n#  include "ingest/bytes/b.h"\n', "ingest/bytes/b.h": ""})
        self.assertEqual(["src/analysis/a.cc:2: analysis may not include ingest/bytes (ingest/bytes/b.h)"], found)

    def test_an_unknown_folder_is_found(self):
        self.assertEqual(1, len(self.check({"util/strings.h": "#include <string>\n"})))
        self.assertEqual(1, len(self.check({"ingest/loose.h": "#include <string>\n"})))

    def test_relative_and_angled_paths_of_ours_are_found(self):
        found = self.check({"base/a.h": "", "base/b.h": '#include "a.h"\n#include "../base/a.h"\n#include <base/a.h>\n'})
        self.assertEqual(3, len(found))

    def test_what_points_along_is_let_through(self):
        self.assertEqual([], self.check({"base/a.h": "#include <vector>\n#include <fmt/format.h>\n",
                                         "model/testing/b.h": '#include "base/a.h"\n#include <gtest/gtest.h>\n'}))


if __name__ == "__main__":
    unittest.main()
