"""The dashboards are what Grafana's own declaration of a dashboard (its package @grafana/schema) says that one is."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import web_packages  # noqa: E402
from shipped import DASHBOARDS  # noqa: E402


class DashboardsTest(unittest.TestCase):
    def compile(self, dashboards):
        """What TypeScript's compiler says of these texts as dashboards, by name."""
        packages = pathlib.Path(web_packages.packages())
        with tempfile.TemporaryDirectory(prefix="lkg-") as folder:
            program = pathlib.Path(folder) / "dashboards.ts"
            (pathlib.Path(folder) / "node_modules").symlink_to(packages / "node_modules")
            lines = ["import type { Dashboard } from '@grafana/schema';"]
            lines += [f"export const {name}: Dashboard = {' '.join(text.split())};" for name, text in dashboards.items()]
            program.write_text("\n".join(lines), encoding="utf-8")
            done = subprocess.run([packages / "node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext",
                                   "--moduleResolution", "bundler", "--target", "es2022", program], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=600, check=False, env={**os.environ, "NO_COLOR": "1"})
        self.assertEqual(done.returncode != 0, bool(done.stdout), done.stderr)
        return done.stdout

    def test_each_is_a_dashboard(self):
        texts = {path.stem.replace("-", "_"): path.read_text(encoding="utf-8") for path in sorted(DASHBOARDS.glob("*.json"))}
        self.assertGreater(len(texts), 5)
        self.assertEqual("", self.compile(texts))

    def test_a_mistake_is_seen(self):
        [text] = [path.read_text(encoding="utf-8") for path in DASHBOARDS.glob("job.json")]
        said = self.compile({"wrong": text.replace('"schemaVersion"', '"schemaVersions"')})
        self.assertIn("error TS", said)
        self.assertIn("schemaVersions", said)


if __name__ == "__main__":
    unittest.main()
