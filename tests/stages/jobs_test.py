"""`lockstep run --stages` on real Gloo jobs: who costs the job time in which stage, and what is left of a job that is killed."""

import html
import json
import os
import pathlib
import signal
import subprocess
import unittest

import faulty_job
from page_file import Page
from pytorch import JobCase, job_environment, torchrun
from waiting import PATIENCE_S, wait_until

BINARY = os.environ["LOCKSTEP_BINARY"]
SOURCE = pathlib.Path(os.environ["LOCKSTEP_SOURCE"])
STEPS = 40
WAY_STEPS = 8  # Of ways_to_train.py.


def stages(*arguments):
    return subprocess.run([BINARY, "stages", *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S, check=False)


class StagesTest(JobCase):
    def test_a_slow_rank_is_named_with_its_stage(self):
        for fault, rank, stage, flags in (("data:2:60:every", 2, "input", []), ("backward:1:60:every", 1, "backward", ["--quiet"])):
            with self.subTest(fault):
                folder = self.folder / fault.replace(":", "-")
                said, summary = faulty_job.run(BINARY, self.python, folder, 4, STEPS, fault, *flags)
                faulty_job.check_sums(self, summary, 4)
                verdict = summary["data"]["verdict"]
                self.assertEqual(("straggler", rank, stage), (verdict["answer"], verdict["rank"], verdict["stage"]), said)
                self.assertEqual(STEPS, summary["data"]["step_count"])
                # What a step lost is what the rank was made to wait, less what it would have waited itself.
                cost_ms = verdict["cost_ns"] / STEPS / 1e6
                self.assertGreater(cost_ms, 0.5 * float(fault.split(":")[2]), said)
                (self.assertNotIn if flags else self.assertIn)(verdict["sentence"], " ".join(said.split()))
                again = stages("--json", folder)
                self.assertEqual(0, again.returncode, again.stderr)
                # How the command ended is what `lockstep run` alone has seen.
                self.assertEqual(0, summary["data"]["job"].pop("exit_status"))
                told = json.loads(again.stdout)
                self.assertIsNone(told["data"]["job"].pop("exit_status"))
                self.assertEqual(summary, told)
                print(verdict["sentence"])

    def test_groups_that_synchronise_apart(self):
        """All ranks never meet: the one that is slow is named by those of its group that wait for it."""
        for way, fault, rank, stage, waiting in (("dp_tp", "forward:3:60:every", 3, "forward", {("dp", (1, 3)), ("tp", (2, 3))}),
                                                 ("dp_pp", "backward:2:40:every", 2, "backward", {("dp", (0, 2)), ("pp", (2, 3))}),
                                                 ("dtensors", "forward:1:60:every", 1, "forward", {("dp", (1, 3)), ("tp", (0, 1))}),
                                                 ("pp", "forward:1:40:every", 1, "forward", {None})):
            with self.subTest(way):
                said, summary = faulty_job.run(BINARY, self.python, self.folder / way, 4, STEPS // 2, fault, way=way)
                faulty_job.check_sums(self, summary, 4)
                data = summary["data"]
                verdict = data["verdict"]
                self.assertEqual(("straggler", rank, stage), (verdict["answer"], verdict["rank"], verdict["stage"]), said)
                groups = {(group["name"], tuple(group["ranks"])): group for group in data["groups"]}
                named = {"pp": [], "dtensors": ["dp", "tp"]}.get(way, way.split("_"))
                self.assertEqual({(name, ranks) for name in named for ranks in (((0, 2), (1, 3)) if name == "dp" else ((0, 1), (2, 3)))},
                                 set(groups), said)
                self.assertIn(verdict["group"], {group[0] if group else None for group in waiting}, said)
                for (name, ranks), group in groups.items():
                    self.assertEqual(name == "pp", group["pairwise"])
                    self.assertEqual(len(ranks), len(group["wait_ns"]))
                    if (name, ranks) in waiting:
                        self.assertEqual((rank, stage), (group["rank"], group["stage"]), said)
                        self.assertGreater(max(group["wait_ns"]), 20e6 * STEPS / 2, said)
                print(verdict["sentence"])

    def test_ways_to_train(self):
        """Each learns what it learns without lockstep, and each of its steps has the stages that it is made of."""
        training = torchrun(self.python, 2, faulty_job.HERE / "ways_to_train.py")
        folder = self.folder / "ways"
        learnt = []
        for command in (training, [BINARY, "run", "--quiet", f"--stages={folder}", "--", *training]):
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=job_environment(), timeout=PATIENCE_S, check=False)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertNotIn("are not marked", done.stderr)
            learnt.append(json.loads(done.stdout.splitlines()[-1]))
        self.assertEqual(learnt[0], learnt[1])
        wanted = ("forward", "backward", "comm", "optimizer")
        counts = ", ".join(f"sum(e.name = '{name}')" for name in wanted)
        query = (f"select s.step, {counts} from steps s join events e on e.start_ns >= s.start_ns and e.start_ns < s.end_ns "
                 "group by s.step order by s.step")
        files = list(folder.glob("*.spans"))
        self.assertEqual(2, len(files))
        for file in files:
            answer = subprocess.run([BINARY, "query", "--format", "csv", file, query], capture_output=True, text=True, check=False)
            self.assertIn(answer.returncode, (0, 4), answer.stderr)  # Partial: of one rank alone.
            rows = [tuple(map(int, line.split(","))) for line in answer.stdout.splitlines()[1:]]
            self.assertEqual(list(range(WAY_STEPS * len(learnt[0]))), [row[0] for row in rows])
            for step, *found in rows:
                if step % WAY_STEPS >= 2:  # The first ones of a way are those that its modules are found in.
                    way = list(learnt[0])[step // WAY_STEPS]
                    self.assertTrue(all(found), (file.name, way, step, found))
                    # A local model's backward waits for nobody; what a functional collective adds up is waited for in both directions.
                    exact = {"beside_a_local_model": [2, 2, 1, 1], "functional": [1, 1, 2, 1]}.get(way, found)
                    self.assertEqual(exact, found, (file.name, way, step))

    def test_a_rank_that_grows_slow_is_a_change(self):
        said, summary = faulty_job.run(BINARY, self.python, self.folder / "late", 2, 2 * STEPS, "backward:1:120:late")
        faulty_job.check_sums(self, summary, 2)
        # Of all steps one after another the first 40 are the usual ones.
        late = [change for change in summary["data"]["changes"] if change["first_step"] >= STEPS]
        self.assertEqual([(1, "backward")], [(change["rank"], change["stage"]) for change in late], said)
        self.assertLess(late[0]["first_step"], STEPS + 5, said)
        self.assertGreater(late[0]["median_step_ns"] - late[0]["usual_step_ns"], 60e6, said)
        self.assertIn(late[0]["sentence"], " ".join(said.split()))
        self.assertEqual([], summary["data"]["memory"]["findings"], said)

    def test_a_rank_that_leaks_is_named_and_the_other_is_not(self):
        said, summary = faulty_job.run(BINARY, self.python, self.folder / "leak", 2, 400, "leak:1:0:4")
        faulty_job.check_sums(self, summary, 2)
        memory = summary["data"]["memory"]
        print(*(finding["sentence"] for finding in memory["findings"]), sep="\n")
        self.assertEqual({1}, {finding["rank"] for finding in memory["findings"]}, said)
        self.assertEqual({"creep", "imbalance"}, {finding["kind"] for finding in memory["findings"]}, said)
        for rank in memory["ranks"]:
            self.assertGreater(rank["resident"]["peak_bytes"], 50e6)
            self.assertGreater(rank["host_bytes"], rank["resident"]["peak_bytes"])
            # There is no device here: nothing is said of one.
            self.assertEqual([None] * 5, [rank[name] for name in ("allocated", "reserved", "peak_allocated_bytes", "device_bytes",
                                                                 "allocation_retry_count")])
        early, middle, late = memory["ranks"][1]["resident"]["third_bytes"]
        self.assertGreater(late - early, 100e6)
        self.assertGreater(middle, early)
        page = self.folder / "leak.html"
        done = stages(self.folder / "leak", "-o", page, "--json")
        self.assertEqual(0, done.returncode)
        page = Page(page)
        self.assertEqual(json.loads(done.stdout)["data"], page.data["answer"])
        self.assertIn(summary["data"]["verdict"]["sentence"], html.unescape(page.summary()))
        for finding in memory["findings"]:
            self.assertIn(finding["sentence"], " ".join(said.split()))

    def test_a_program_that_marks_some_of_it_itself(self):
        """Its steps count, its stages count, and what the hooks see counts once."""
        folder = self.folder / "own"
        environment = job_environment(PYTHONPATH=str(pathlib.Path(os.environ["LOCKSTEP_BUILD"]) / "python"))
        command = [BINARY, "run", "--quiet", f"--stages={folder}", "--", *torchrun(self.python, 2, faulty_job.HERE / "marks_of_its_own.py", str(STEPS))]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, timeout=PATIENCE_S, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        faulty_job.check_sums(self, summary, 2)
        self.assertEqual(STEPS, summary["data"]["step_count"])
        slept_ns = {stage["stage"]: min(stage["rank_ns"]) for stage in summary["data"]["stages"]}
        # Each is slept in for 2 ms a step; in input for the next one, of which the last step has none.
        for stage in ("h2d", "input", "forward"):
            self.assertGreaterEqual(slept_ns[stage], (STEPS - 1) * 2e6, slept_ns)
        for stage in ("backward", "comm_exposed", "optimizer"):
            self.assertGreater(slept_ns[stage], 0, slept_ns)

    def test_any_launcher_and_one_line_in_the_program(self):
        """Without `lockstep run`: by the environment, and by a call after torch and the package were imported."""
        python = pathlib.Path(os.environ["LOCKSTEP_BUILD"]) / "python"
        site = self.folder / "site"
        site.mkdir()
        # As in the folder of an interpreter that the package is installed in: site reads the .pth file there.
        (site / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(SOURCE / 'python')!r})\n", encoding="utf-8")
        program = torchrun(self.python, 2, faulty_job.HERE / "faulty_training.py", STEPS, "forward:1:60:every")
        asked = torchrun(self.python, 2, faulty_job.HERE / "enables_stages.py", self.folder / "asked", STEPS, "forward:1:60:every")
        for name, command, variables in (("told", program, {"LOCKSTEP_STAGES": str(self.folder / "told")}), ("asked", asked, {}),
                                         ("lockstep-stages", program, {"LOCKSTEP_STAGES": "1"}), ("off", program, {"LOCKSTEP_STAGES": "0"})):
            with self.subTest(name):
                done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=self.folder,
                                      env=job_environment(PYTHONPATH=f"{site}:{python}", **variables))
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertNotIn("lockstep:", done.stderr)
                if name == "off":
                    self.assertEqual(files, set(self.folder.rglob("*.spans")))
                    continue
                files = set(self.folder.rglob("*.spans"))
                answer = stages("--json", self.folder / name)
                self.assertEqual(0, answer.returncode, answer.stderr)
                verdict = json.loads(answer.stdout)["data"]["verdict"]
                self.assertEqual(("straggler", 1, "forward"), (verdict["answer"], verdict["rank"], verdict["stage"]), answer.stdout)

    def test_a_rank_that_is_killed(self):
        folder = self.folder / "killed"
        command = [BINARY, "run", f"--stages={folder}", "--",
                   *torchrun(self.python, 2, faulty_job.HERE / "faulty_training.py", "100000", "none")]
        job = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env=job_environment())
        self.addCleanup(job.stderr.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.terminate)

        def running():
            answer = stages("--json", folder)
            data = json.loads(answer.stdout)["data"] if answer.returncode == 0 else None
            return data if data and len(data["ranks"]) == 2 and data["step_count"] >= 10 else None

        data = wait_until(running, "ten steps of both ranks", job)
        self.assertEqual([False, False], [rank["ended_in_order"] for rank in data["ranks"]])
        os.kill(data["ranks"][1]["process_id"], signal.SIGKILL)
        _, said = job.communicate(timeout=PATIENCE_S)
        self.assertNotEqual(0, job.returncode)
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        faulty_job.check_sums(self, summary, 2)
        self.assertGreaterEqual(summary["data"]["step_count"], data["step_count"])
        self.assertFalse(summary["data"]["ranks"][1]["ended_in_order"])
        self.assertEqual(job.returncode, summary["data"]["job"]["exit_status"])
        refused = subprocess.run([BINARY, "compare", folder, folder], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(1, refused.returncode, refused.stdout)
        self.assertIn("did not complete", refused.stderr)
        self.assertIn("Stages of a step", said)
        # The other one is missing: it is said, and the rest is told.
        left = next(path for path in folder.glob("*.spans") if f"pid{data['ranks'][0]['process_id']}" in path.name)
        alone = stages("--json", left)
        self.assertEqual(0, alone.returncode, alone.stderr)
        self.assertEqual(["rank_without_stages"], [row["code"] for row in json.loads(alone.stdout)["ledger"]])
        self.assertEqual("one_rank", json.loads(alone.stdout)["data"]["verdict"]["doubt"])

    def test_what_cannot_be_read(self):
        self.assertEqual(2, stages().returncode)
        missing = stages(self.folder / "nowhere")
        self.assertEqual(1, missing.returncode)
        self.assertIn("nowhere", missing.stderr)
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertIn("lockstep run --stages", stages(empty).stderr)
        (empty / "rank0.spans").write_bytes(b"LSSPAN\r\n" + b"\xff" * 5000)
        damaged = stages(empty)
        self.assertEqual(1, damaged.returncode)


if __name__ == "__main__":
    unittest.main()
