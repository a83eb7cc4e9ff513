"""What Python says is what the command says: on the recorded job and on every file of the shared data sets, table by table."""

import json
import pathlib
import unittest
import warnings

import analyze_program as program
import lockstep
from samples import RECORDED

FLAT = ("breakdown", "steps", "idle", "idle_host", "kernels", "operators", "memory", "launch", "queues", "collectives",
        "stragglers", "findings", "groups", "group_operations", "ddp", "ddp_buckets", "fsdp", "pipeline", "moe", "moe_ranks",
        "inference", "inference_requests", "regions", "region_balance", "counters", "counter_balance", "flops", "flops_by_operator",
        "kernel_launches", "kernel_rooflines", "kernel_sums", "stage_scopes", "stage_shares", "stage_agreement")
CLOCK = ("basis", "offset_ns", "uncertainty_ns", "drift_ppm", "reference_ns", "sample_count")


def load(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lockstep.PartialWarning)
        return lockstep.load(path, **options)


class ResultsCase(unittest.TestCase):
    maxDiff = 4000

    def check(self, path, flags=(), **options):
        """Compares everything, or, where the command refuses, the refusal."""
        process = program.run(["analyze", "--json", "--quiet", *flags, str(path)])
        if process.returncode == program.FAILED:
            with self.assertRaises(lockstep.Error) as raised:
                load(path, **options)
            self.assertIn(str(raised.exception), process.stderr.decode("utf-8"))
            return None
        self.assertIn(process.returncode, (program.DONE, program.PARTIAL), process.stderr)
        run = load(path, **options)
        self.assertEqual(run.to_json(), process.stdout.decode("utf-8"))
        document = json.loads(process.stdout)
        self.compare(run, document)
        self.assertEqual(run.partial, process.returncode == program.PARTIAL)
        return run

    def compare(self, run, document):
        data = document["data"]
        for name in FLAT:
            if data[name] is None:
                with self.assertRaises(lockstep.FailedPreconditionError):
                    getattr(run, name)()
            else:
                self.assertEqual(getattr(run, name)().to_dicts(), data[name], name)
        job = dict(data["job"])
        job["missing_ranks"] = tuple(job["missing_ranks"])
        job["passes"] = tuple(job["passes"])
        self.assertEqual(run.job, lockstep.Job(**job))
        clocks = run.clocks().to_dicts()
        ranks = [dict(row, clock={key: clock[key] for key in CLOCK}) for row, clock in zip(run.ranks, clocks)]
        self.assertEqual(ranks, data["ranks"])
        if data["imbalance"] is not None:
            spread = {row.pop("quantity"): row for row in run.imbalance().to_dicts()}
            self.assertEqual(spread, data["imbalance"])
        self.assertEqual(run.ledger.to_dicts(), document["ledger"])
        if not job["passes"] or "wait_states" in job["passes"]:
            self.assertEqual((run.wait_states(), run.critical_path()), (data["wait_states"], data["critical_path"]))
        if data["collectives"] is not None:
            self.compare_members(run, data["collectives"])

    def compare_members(self, run, collectives):
        expected = []
        for row in collectives:
            common = {key: value for key, value in row.items() if not isinstance(value, list)}
            for place in range(len(row["ranks"])):
                own = {key: row[key][place] for key in ("arrival_ns", "end_ns", "wait_ns", "duration_ns")}
                expected.append({**common, "rank": row["ranks"][place], **own})
        self.assertEqual(run.collective_members().to_dicts(), expected)


class RecordedTest(ResultsCase):
    def test_the_recorded_job(self):
        self.check(RECORDED)

    def test_options_mean_the_same(self):
        self.check(RECORDED, ["--drop-last-step"], drop_last_step=True)
        self.check(RECORDED, ["--pass", "kernels,stragglers"], passes=["kernels", "stragglers"])
        self.check(RECORDED, ["--communication-threshold", "9", "--imbalance-threshold", "9"],
                   communication_threshold=9, imbalance_threshold=9)
        self.check(RECORDED, ["--step-name", "forward"], step_name="forward")

    def test_a_part_of_the_ranks_is_partial(self):
        run = self.check(RECORDED / "rank2.json.gz")
        self.assertTrue(run.partial)
        self.assertEqual(run.job.missing_ranks, (0, 1, 3))

    def test_one_thread_and_many_say_the_same(self):
        self.assertEqual(load(RECORDED, threads=1).to_json(), load(RECORDED, threads=5).to_json())

    def test_text_is_the_commands(self):
        process = program.run(["analyze", "--quiet", "--ascii", "--section", "all", "--top", "3", str(RECORDED)])
        self.assertEqual(load(RECORDED).to_text(["all"], top=3, ascii=True), process.stdout.decode("utf-8"))


class DataSetsTest(ResultsCase):
    """One test for each set of the shared data, over each of its files and the set as a whole."""

    def check_set(self, name):
        folder = pathlib.Path(program.data_path("traces", name))
        files = sorted(path for path in folder.rglob("*") if path.is_file() and ".json" in path.name)
        for path in [*files, folder]:
            with self.subTest(path=path.relative_to(folder.parent)):
                self.check(path)


SETS = ("bytedance_stragglers", "chakra_et", "dlrover_xpu_timer_metrics", "hta_counters_memory", "hta_critical_path",
        "hta_ddp_nccl_meta", "hta_edge_cases", "hta_ns_resolution", "hta_trace_diff", "nsys_2gpu_h100_before_after",
        "param_dlrm_8rank_v100", "primus_pp8", "tb_plugin_resnet50_w0", "tracelens_b200_rank0of8", "tracelens_single_gpu")
for set_name in SETS:
    setattr(DataSetsTest, "test_" + set_name, lambda self, name=set_name: self.check_set(name))


class EverySetTest(program.DataCase):
    def test_no_set_is_left_out(self):
        folder = pathlib.Path(program.data_path("traces"))
        self.assertEqual(sorted(path.name for path in folder.iterdir() if path.is_dir()), sorted(SETS))


if __name__ == "__main__":
    unittest.main()
