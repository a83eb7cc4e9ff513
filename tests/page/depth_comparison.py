"""What a page has of critical path, causes, what-if and parallelism, held against --json of the same run."""

CATEGORIES = ("host", "data_loader", "compute", "copy", "transfer", "launch", "kernel_gap", "delay")
TABLES = ("groups", "group_operations", "ddp", "ddp_buckets", "fsdp", "pipeline", "flops", "flops_by_operator",
          "regions", "region_balance", "kernel_launches", "kernel_rooflines", "kernel_sums", "stage_scopes", "stage_shares", "stage_agreement")


class DepthComparison:
    def __init__(self, case, page, answer, rank_index):
        self.case = case
        self.page = page.data
        self.theirs = answer.data
        self.rank_index = rank_index
        self.index = {(row["rank"], row["window"]): i for i, row in enumerate(self.theirs["ranks"])}
        self.origin_ns = int(self.page["job"]["origin_ns"])

    def all(self):
        self.critical_path()
        self.wait_states()
        self.what_if()
        self.bubbles()
        self.parallelism()

    def both(self, table):
        """The table on either side; None where the pass did not run, which both have to say."""
        self.case.assertEqual(self.page[table] is None, self.theirs[table] is None, table)
        return (self.page[table], self.theirs[table]) if self.theirs[table] is not None else None

    def critical_path(self):
        found = self.both("critical_path")
        if found is None:
            return
        mine, theirs = found
        equal = self.case.assertEqual
        steps = theirs["steps"]
        equal(mine["step_count"], len(steps))
        equal(mine["step_ns"], sum(step["step_ns"] for step in steps))
        equal(mine["path_ns"], sum(step["path_ns"] for step in steps))
        equal(mine["largest_error_ns"], max((abs(step["path_ns"] - step["step_ns"]) for step in steps), default=0))
        kinds = {kind: sum(step[f"{kind}_ns"] for step in steps) for kind in CATEGORIES}
        equal({row["category"]: row["path_ns"] for row in mine["categories"]}, {kind: ns for kind, ns in kinds.items() if ns})
        self.path_ranks(mine, theirs)
        self.path_names(mine, theirs)
        self.path_steps(mine, steps)
        self.path_rows(mine, theirs)
        self.path_pieces(mine)

    def path_ranks(self, mine, theirs):
        sums, categories, slack = {}, {}, {}
        for row in theirs["rows"]:
            rank = self.rank_index(row)
            sums[rank] = sums.get(rank, 0) + row["path_ns"]
            parts = categories.setdefault(rank, {})
            parts[row["category"]] = parts.get(row["category"], 0) + row["path_ns"]
        for step in theirs["steps"]:
            for row in step["slack"]:
                rank = self.index[row["rank"], step["window"]]
                slack[rank] = min(slack.get(rank, row["slack_ns"]), row["slack_ns"])
        expected = {rank: (sums.get(rank, 0), categories.get(rank, {}), slack.get(rank)) for rank in {*sums, *slack}}
        self.case.assertEqual({row["rank_index"]: (row["path_ns"], row["category_ns"], row["slack_ns"]) for row in mine["ranks"]}, expected)
        times = [row["path_ns"] for row in mine["ranks"]]
        self.case.assertEqual(times, sorted(times, reverse=True))

    def path_names(self, mine, theirs):
        sums = {}
        for row in theirs["rows"]:
            key = (row["category"], row["name"])
            sums[key] = sums.get(key, 0) + row["path_ns"]
        slack = {(row["category"], row["name"]): row["slack_ns"] for row in theirs["slack"]}
        names = {(row["category"], row["name"]): row for row in mine["names"]}
        self.case.assertEqual(len(names) + mine["rest_name_count"], len(sums))
        self.case.assertEqual(sum(row["path_ns"] for row in mine["names"]) + mine["rest_names_ns"], sum(sums.values()))
        for key, row in names.items():
            self.case.assertEqual((row["path_ns"], row["slack_ns"]), (sums[key], slack.get(key)), key)

    def path_steps(self, mine, steps):
        known = {(step["window"], step["step"]): step for step in steps}
        self.case.assertLessEqual(len(mine["steps"]), len(steps))
        for step in mine["steps"]:
            row = known[step["window"], step["step"]]
            for key in ("step_ns", "path_ns", "rank_count", "unmatched_count"):
                self.case.assertEqual(step[key], row[key], key)
            self.case.assertEqual(step["start_ns"] + self.origin_ns, row["start_ns"])
            self.case.assertEqual(step["category_ns"], {kind: row[f"{kind}_ns"] for kind in CATEGORIES if row[f"{kind}_ns"]})
            if step["slack"] is not None:
                self.case.assertEqual([[self.index[each["rank"], row["window"]], each["slack_ns"]] for each in row["slack"]], step["slack"])

    def path_rows(self, mine, theirs):
        """What each step's path is made of: as --json has it, and whole with what was left out."""
        told = {}
        for place, rank_index, kind, text, ns in mine["rows"]:
            told.setdefault(place, []).append((rank_index, mine["kinds"][kind], mine["texts"][text] or None, ns))
        for place, step in enumerate(mine["steps"]):
            rows = [(self.rank_index(row), row["category"], row["name"], row["path_ns"]) for row in theirs["rows"]
                    if (row["window"], row["step"]) == (step["window"], step["step"])]
            here = told.get(place, [])
            self.case.assertEqual(here, rows[: len(here)])
            self.case.assertEqual(sum(row[3] for row in here) + mine["rest_ns"][place], step["path_ns"])
            if mine["rows_per_step"] is None:
                self.case.assertEqual(len(here), len(rows))

    def path_pieces(self, mine):
        """Stretches lie in the step, in order of time, and are all of the path, unless some were left out. Of a chain whose order was
        not kept they overlap: they are sums by name from where each began."""
        for place, step in enumerate(mine["steps"]):
            pieces = [piece[1:] for piece in mine["pieces"] if piece[0] == place]
            sums = {}
            starts = [piece[3] for piece in pieces]
            self.case.assertEqual(starts, sorted(starts))
            for _, kind, _, start_ns, duration_ns in pieces:
                self.case.assertGreaterEqual(start_ns, 0)
                self.case.assertLessEqual(start_ns, max(step["step_ns"], step["path_ns"]))
                sums[mine["kinds"][kind]] = sums.get(mine["kinds"][kind], 0) + duration_ns
            if mine["pieces_per_step"] is None:
                # Where clocks disagree a delay may be below 0: it shortens the path, and has no place in time.
                self.case.assertGreaterEqual(sums.pop("delay", 0), step["category_ns"].get("delay", 0))
                self.case.assertEqual(sums, {kind: ns for kind, ns in step["category_ns"].items() if kind != "delay"})

    def wait_states(self):
        found = self.both("wait_states")
        if found is None:
            return
        mine, theirs = found
        self.case.assertEqual(mine["wait_ns"], theirs["wait_ns"])
        for row, state in zip(mine["states"], theirs["states"], strict=True):
            self.case.assertEqual(row["rank_index"], self.rank_index(state))
            self.case.assertEqual([row[key] for key in ("kind", "count", "wait_ns")], [state[key] for key in ("kind", "count", "wait_ns")])
        self.case.assertEqual(mine["cause_count"], len(theirs["causes"]))
        same = ("cause", "name", "own_ns", "peers_ns", "direct_wait_ns", "propagated_wait_ns", "wait_ratio", "collective_count",
                "delay_ns", "pattern", "period_steps", "step_count", "text")
        for row, cause in zip(mine["causes"], theirs["causes"]):
            for key in same:
                self.case.assertEqual(row[key], cause[key], key)
            index = lambda rank: self.index[rank, cause["window"]]
            self.case.assertEqual(row["rank_index"], None if cause["rank"] is None else index(cause["rank"]))
            self.case.assertEqual(row["rank_indices"], [index(rank) for rank in cause["ranks"]][:256])
            self.case.assertEqual((row["rank_count"], row["late_step_count"]), (len(cause["ranks"]), len(cause["steps"])))
            self.case.assertEqual(row["steps"], cause["steps"][:1000])
            for chain, other in zip(row["chains"], cause["chains"], strict=True):
                self.case.assertEqual(chain["rank_index"], index(other["rank"]))
                self.case.assertEqual([chain[key] for key in ("wait_ns", "text", "hops")], [other[key] for key in ("wait_ns", "text", "hops")])
        rest = theirs["causes"][len(mine["causes"]):]
        self.case.assertEqual(mine["rest_causes_ns"], sum(cause["direct_wait_ns"] + cause["propagated_wait_ns"] for cause in rest))

    def what_if(self):
        found = self.both("what_if")
        if found is None:
            return
        mine, theirs = found
        for key in ("observed_step_ns", "simulated_step_ns", "error_ratio", "replayed_step_ns"):
            self.case.assertEqual(mine[key], theirs[key], key)
        self.case.assertEqual(mine["levers"], theirs["levers"])
        self.case.assertEqual(mine["lever_count"], len(theirs["levers"]))
        self.case.assertEqual(mine["steps"], theirs["steps"])
        self.case.assertEqual(mine["study"] is None, theirs["study"] is None)

    def bubbles(self):
        found = self.both("bubbles")
        if found is not None:
            self.case.assertEqual(*found)

    def parallelism(self):
        for table in TABLES:
            found = self.both(table)
            if found is None:
                continue
            for mine, theirs in zip(*found, strict=True):
                expected = dict(theirs)
                if "rank_index" in mine:
                    expected["rank_index"] = self.index[expected.pop("rank"), expected.pop("window")]
                self.case.assertEqual(mine, expected, table)
        peaks = {peak["device"]: peak for peak in self.page["device_peaks"]}
        for row in self.theirs["flops"] or []:
            if row["peak_flops_per_s"] is not None:
                self.case.assertEqual(peaks[row["device"]]["flops_per_s"][row["precision"]], row["peak_flops_per_s"])
