"""Jobs of `lockstep bench collectives`, for the tests beside this file."""

import json
import os

import jsonschema

from lockstep_program import SOURCE

SCHEMA = json.loads((SOURCE / "docs/schema/bench-collectives-1.schema.json").read_text(encoding="utf-8"))
FACTORS = {"all_reduce": lambda n: 2 * (n - 1) / n, "all_gather": lambda n: (n - 1) / n, "reduce_scatter": lambda n: (n - 1) / n,
           "all_to_all": lambda n: (n - 1) / n, "broadcast": lambda n: 1, "reduce": lambda n: 1, "send_recv": lambda n: 1}


def environment(**variables):
    """This process's, without what a launcher or another test left."""
    other = ("OMPI_", "PMIX_", "PMI_", "MPI_LOCAL", "SLURM_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "FAKE_", "LOCKSTEP_BENCH_", "TORCHELASTIC_")
    return {**{name: value for name, value in os.environ.items() if not name.startswith(other)}, **variables}


def read(text):
    """The data of what it printed with --json."""
    document = json.loads(text)
    jsonschema.validate(document, SCHEMA)
    return document["data"]


def check_rows(test, rows, ranks):
    """Every operation is there and right, and its bandwidths are those of the formulas."""
    test.assertEqual({row["operation"] for row in rows}, set(FACTORS))
    for row in rows:
        timings = [timing for timing in (row["out_of_place"], row["in_place"]) if timing]
        test.assertTrue(timings, row)
        for timing in timings:
            test.assertEqual((timing["wrong_count"], timing["wrong_ranks"]), (0, []), row)
            test.assertLessEqual(timing["fastest_ns"], timing["mean_ns"])
            test.assertLessEqual(timing["mean_ns"], timing["slowest_ns"])
            algbw = row["bytes"] / timing["mean_ns"] * 1e9
            test.assertAlmostEqual(timing["algbw_bytes_per_s"] / algbw, 1, places=9)
            test.assertAlmostEqual(timing["busbw_bytes_per_s"] / algbw, FACTORS[row["operation"]](ranks), places=9)


def measure_slow_link(measure, ranks):
    """A planted slow link, which is slow beside the others: measured again where the machine held these up, too. `measure` returns a
    benchmark's data. (that, the pair of these ranks)"""
    for _ in range(5):
        data = measure()
        pair = next(pair for pair in data["pairs"] if (pair["rank_a"], pair["rank_b"]) == ranks)
        if pair["is_slow"]:
            break
        print("a machine so busy that other links were as slow:", [round(each["bytes_per_s"]) for each in data["pairs"]], flush=True)
    return data, pair


def check_slow_link(test, pair):
    """That the pair is slow, and each way as slow as 4 MiB are that wait 200 ms. The rate is that of the time without the latency, which a
    busy machine makes longer than it is."""
    test.assertTrue(pair["is_slow"], pair)
    for name in ("bytes_per_s", "back_bytes_per_s"):
        test.assertLess(pair[name], (4 << 20) / (0.2 - pair["latency_ns"] * 1e-9), name)
