"""SQL in the page answers as `lockstep query` does over the traces: the questions of docs/query.md, and some over every kind of table."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import web_packages  # noqa: E402
from analyze_program import PROGRAM, SOURCE_ROOT, generate  # noqa: E402

# Instants count from the start of the run there, and from 1970 here: differences are the same.
OURS = (
    "SELECT rank, lane, count(*) AS events, sum(duration_ns) AS total_ns FROM events GROUP BY rank, lane ORDER BY rank, lane",
    "SELECT rank, kind, count(*) AS kernels, sum(duration_ns) AS total_ns FROM kernels GROUP BY rank, kind ORDER BY rank, kind",
    "SELECT rank, lane, device, stream, event_count FROM tracks ORDER BY rank, lane, device, stream, thread_id",
    "SELECT instance, group_name, sequence, name, bytes, rank_count, last_arrival_ns - first_arrival_ns AS skew_ns, last_rank, transfer_ns "
    "FROM collective_instances ORDER BY instance",
    "SELECT instance, rank, wait_ns, last_rank FROM collectives ORDER BY instance, rank LIMIT 100",
    "SELECT rank, host, device, source FROM ranks ORDER BY rank",
    "SELECT rank, step, end_ns - start_ns AS length_ns FROM steps ORDER BY rank, step",
    "SELECT e.step, count(*) AS events FROM events AS e JOIN steps AS s ON s.rank = e.rank AND s.step = e.step "
    "AND e.start_ns >= s.start_ns AND e.start_ns < s.end_ns GROUP BY e.step ORDER BY e.step",
    "SELECT rank, union_ns(start_ns, end_ns) AS busy_ns, intersect_ns(start_ns, end_ns, kind = 'compute') AS both_ns, "
    "round(stddev(duration_ns), 3) AS scatter FROM kernels WHERE kind IN ('compute', 'communication') GROUP BY rank ORDER BY rank",
    "SELECT id, severity, ranks, gain_ns_per_step FROM findings",
)
NOT_IN_THE_PAGE = "memory_events"


def questions():
    with open(os.path.join(SOURCE_ROOT, "docs", "query.md"), encoding="utf-8") as file:
        found = re.findall(r"^```sql\n(.*?)^```", file.read(), re.S | re.M)
    return [sql for sql in found if NOT_IN_THE_PAGE not in sql]


class Sql(unittest.TestCase):
    def test_answers_are_those_of_lockstep_query(self):
        web_packages.browser()
        web_packages.packages()
        with tempfile.TemporaryDirectory(prefix="lockstep-sql-") as scratch:
            job, page, asked = (os.path.join(scratch, name) for name in ("job", "page.html", "asked.json"))
            generate(job, "--ranks", 4, "--steps", 6, "--layers", 7, "--seed", 3, "--bucket-layers", 2, "--straggler", "2:3000:kernel", "--overlap", 0.5, "--memory")
            subprocess.run([PROGRAM, "analyze", job, "-q", "-o", page], check=True, stdout=subprocess.DEVNULL)
            answers = []
            for sql in [*questions(), *OURS]:
                done = subprocess.run([PROGRAM, "query", job, sql, "-q", "--json"], check=True, stdout=subprocess.PIPE)
                answer = json.loads(done.stdout)
                answers.append({"sql": sql, "columns": answer["columns"], "rows": [list(row.values()) for row in answer["rows"]]})
            self.assertGreater(len(answers), len(OURS) + 6)
            with open(asked, "w", encoding="utf-8") as file:
                json.dump(answers, file)
            print(web_packages.run_node("sql.mjs", page, asked))


if __name__ == "__main__":
    unittest.main()
