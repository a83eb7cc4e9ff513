#!/usr/bin/env python3
"""Reports of Nsight Systems' own format (.nsys-rep), which nsys exports: asked for by version, and said when it is not there."""

import json
import lzma
import os
import shutil
import tempfile
import unittest

import analyze_program as lockstep


class ReportTest(unittest.TestCase):
    """Reports of Nsight Systems' own format, with a stand-in for nsys."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lockstep-report-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.report = os.path.join(self.folder, "job.rank1-of-2.nsys-rep")
        with open(self.report, "w", encoding="ascii") as file:
            file.write("NVIDIA Tegra Profiler Report 2024@5@1@113-245134037904v0.\nLocal (CLI)")

    def analyze(self, stand_in=None):
        """With PATH leading to no nsys but the stand-in."""
        tools = os.path.join(self.folder, "stand_in_tools")
        os.makedirs(tools, exist_ok=True)
        if stand_in is not None:
            with open(os.path.join(tools, "nsys"), "w", encoding="ascii") as file:
                file.write("#!/bin/sh\n# A stand-in, not Nsight Systems.\n" + stand_in)
            os.chmod(os.path.join(tools, "nsys"), 0o755)
        path = os.environ["PATH"]
        os.environ["PATH"] = tools if stand_in is None else tools + ":/usr/bin:/bin"
        try:
            return lockstep.run(["analyze", "--json", "--quiet", self.report])
        finally:
            os.environ["PATH"] = path

    def test_without_nsys_it_says_what_to_run(self):
        process = self.analyze()
        self.assertEqual(process.returncode, lockstep.FAILED)
        self.assertIn("nsys export -t sqlite", process.stderr.decode())

    def test_an_older_nsys_is_not_asked(self):
        process = self.analyze('[ "$1" = --version ] && echo "NVIDIA Nsight Systems version 2023.4.4.54-23443v0" && exit\n'
                               'echo asked > "$0.asked"\n')
        self.assertEqual(process.returncode, lockstep.FAILED)
        self.assertIn("2024.5.1", process.stderr.decode())
        self.assertFalse(os.path.exists(os.path.join(self.folder, "stand_in_tools", "nsys.asked")))

    def test_a_newer_one_exports_it(self):
        packed = lockstep.data_path("nsight", "own_torchrun_gloo_4rank", "train.gpu-node-01.rank1-of-4.sqlite.xz")
        plain = os.path.join(self.folder, "made-elsewhere")
        with lzma.open(packed) as source, open(plain, "wb") as target:
            shutil.copyfileobj(source, target)
        process = self.analyze('[ "$1" = --version ] && echo "NVIDIA Nsight Systems version 2026.2.1.210-26213v0" && exit\n'
                               '[ "$1" = export ] || exit 9\nwhile [ "$1" != --output ]; do shift; done\n'
                               f'cp "{plain}" "$2"\n')
        self.assertEqual(process.returncode, lockstep.PARTIAL, process.stderr.decode())
        self.assertEqual([row["rank"] for row in json.loads(process.stdout)["data"]["ranks"]], [1])

    def test_payloads_are_asked_for_where_they_can_be_had(self):
        packed = lockstep.data_path("nsight", "own_torchrun_gloo_4rank", "train.gpu-node-01.rank1-of-4.sqlite.xz")
        plain = os.path.join(self.folder, "made-elsewhere")
        with lzma.open(packed) as source, open(plain, "wb") as target:
            shutil.copyfileobj(source, target)
        calls = os.path.join(self.folder, "stand_in_tools", "calls")
        copy = f'echo "$*" >> "{calls}"\nwhile [ "$1" != --output ]; do shift; done\ncp "{plain}" "$2"\n'
        for version, refuses, asked in (("2024.6.2.1-1v0", False, [False]), ("2025.3.1.90-1v0", False, [True]),
                                        ("2026.1.1.1-1v0", True, [True, False])):
            refusal = f'case "$*" in *include-json*) echo "$*" >> "{calls}"; exit 1;; esac\n' if refuses else ""
            process = self.analyze(f'[ "$1" = --version ] && echo "NVIDIA Nsight Systems version {version}" && exit\n{refusal}{copy}')
            self.assertEqual(process.returncode, lockstep.PARTIAL, process.stderr.decode())
            with open(calls, encoding="utf-8") as file:
                self.assertEqual(["--include-json=true" in line for line in file], asked, version)
            os.remove(calls)

    def test_a_report_beside_its_export_is_passed_over(self):
        packed = lockstep.data_path("nsight", "own_torchrun_gloo_4rank", "train.gpu-node-01.rank1-of-4.sqlite.xz")
        shutil.copy(packed, os.path.join(self.folder, "job.rank1-of-2.sqlite.xz"))
        process = lockstep.run(["analyze", "--json", "--quiet", self.folder])
        document = json.loads(process.stdout)
        self.assertEqual(len(document["data"]["ranks"]), 1)
        self.assertNotIn("unsupported_format", {entry["code"] for entry in document["ledger"]})

    def test_what_else_lies_in_such_folders_is_named(self):
        for name in ("raw.qdstrm", "kernels.ncu-rep"):
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(b"NVR\0")
        os.remove(self.report)
        process = lockstep.run(["analyze", "--quiet", self.folder])
        self.assertEqual(process.returncode, lockstep.FAILED)
        text = process.stderr.decode()
        self.assertIn("raw.qdstrm", text)
        self.assertIn("kernels.ncu-rep", text)


if __name__ == "__main__":
    unittest.main()
