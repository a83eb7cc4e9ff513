"""The live page in Chromium while the network between two nodes is cut for half a minute, while the other node's daemon dies and comes back, and
with a viewer that never reads: it says what is old and since when, and goes on by itself."""

import json
import os
import pathlib
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / "support"), str(TESTS / "monitoring")]
import web_packages  # noqa: E402
from live_site import LiveSite  # noqa: E402
from two_nodes import PORT, TwoNodes  # noqa: E402


class LiveOutages(TwoNodes):
    def setUp(self):
        web_packages.browser()
        web_packages.packages()
        super().setUp()

    def test_what_is_old_is_said_and_goes_on(self):
        self.wait_for_steps()
        one, two = self.nodes
        site = LiveSite(self, "--host", ",".join(f"{node.address}:{PORT}" for node in self.nodes), inside=one.inside)
        daemon = " ".join(map(str, self.daemon_command(2)))
        link = [*two.inside, "ip", "link", "set", two.interface]
        what = {"outages": [
            {"name": "network", "begin": [*link, "down"], "end": [*link, "up"], "least_s": 30},
            {"name": "daemon", "begin": [*two.inside, "pkill", "-9", "lockstepd"], "end": [*two.inside, "sh", "-c", f"setsid {daemon} >/dev/null 2>&1 &"],
             "least_s": 3},
        ]}
        if pictures := os.environ.get("LOCKSTEP_PICTURES"):
            what["pictures"] = os.path.join(pictures, "outages")
            os.makedirs(what["pictures"], exist_ok=True)
        print(web_packages.run_node("live_outages.mjs", site.address, json.dumps(what),
                                    inside=["ip", "netns", "exec", one.namespace]))  # All processes are seen there.


if __name__ == "__main__":
    unittest.main()
