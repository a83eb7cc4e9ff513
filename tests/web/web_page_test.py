"""The page that is built into lockstep is the one that web/ builds, and it keeps to its limits."""

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import web_packages  # noqa: E402
from waiting import PATIENCE_S  # noqa: E402

REPORT = "page.html"
PAGES = (REPORT, "answer.html", "live.html")
SQL = ("sql_worker.js", "sqlite.wasm")
MARKS = ("title", "meta", "summary", "blocks")
LARGEST_PROGRAM = 100_000  # Bytes, script and style, gzipped.


def page_text(name):
    with open(os.path.join(web_packages.WEB, "dist", name), encoding="utf-8") as file:
        return file.read()


def pages():
    return [(name, page_text(name)) for name in PAGES]


def inline(text, tag):
    return re.findall(rf"<{tag}(?: [^>]*)?>(.*?)</{tag}>", text, re.S)


class WebPage(unittest.TestCase):
    def in_copy(self, *command):
        """Runs a command in a copy of web/ with the packages of the lock file; returns the copy's path."""
        installed = web_packages.packages()
        folder = tempfile.mkdtemp(prefix="lockstep-web-")
        self.addCleanup(shutil.rmtree, folder)
        copy = os.path.join(folder, "somewhere", "else")
        shutil.copytree(web_packages.WEB, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
        os.symlink(os.path.join(installed, "node_modules"), os.path.join(copy, "node_modules"))
        done = subprocess.run(command, cwd=copy, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout)
        return copy

    def test_source_builds_the_embedded_pages(self):
        copy = self.in_copy("npm", "run", "build")
        names = sorted(os.listdir(os.path.join(copy, "dist")))
        self.assertEqual(names, sorted((*PAGES, *SQL)))
        for name in names:
            with open(os.path.join(copy, "dist", name), "rb") as built, open(os.path.join(web_packages.WEB, "dist", name), "rb") as committed:
                self.assertTrue(built.read() == committed.read(), f"web/dist/{name} is not what web/ builds: run `npm run build` in web/")

    def test_types_are_sound(self):
        self.in_copy("npm", "run", "check")

    def test_program_is_small(self):
        for name, text in pages():
            program = "".join(inline(text, "script") + inline(text, "style")).encode()
            packed = len(gzip.compress(program, 9, mtime=0))
            print(f"script and style of {name}: {len(program)} bytes, {packed} gzipped")
            self.assertLessEqual(packed, LARGEST_PROGRAM)

    def test_marks_are_there_once(self):
        for _, text in pages():
            for mark in MARKS:
                self.assertEqual(text.count(f"<!--lockstep:{mark}-->"), 1, mark)
            self.assertEqual(text.count("<!--lockstep:"), len(MARKS))
            # A served page puts 'self' in its place.
            self.assertEqual(text.count("connect-src 'none'"), 1)

    def test_policy_allows_this_script_and_this_style_only(self):
        for name, text in pages():
            policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
            directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
            self.assertEqual(directives["default-src"], "'none'")
            for tag, directive in (("script", "script-src"), ("style", "style-src")):
                parts = inline(text, tag)
                self.assertEqual(len(parts), 1)
                digest = base64.b64encode(hashlib.sha256(parts[0].encode()).digest()).decode()
                # SQLite's WebAssembly runs in the report alone, in a worker that the page makes.
                wasm = " 'wasm-unsafe-eval'" if tag == "script" and name == REPORT else ""
                self.assertEqual(directives[directive], f"'sha256-{digest}'{wasm}")
            self.assertEqual(directives.get("worker-src"), "blob:" if name == REPORT else None)
            self.assertNotIn("unsafe", policy.replace(" 'wasm-unsafe-eval'", ""))
            markup = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", text, flags=re.S)
            self.assertNotRegex(markup, r"\sstyle=|\son[a-z]+=|https?:")
            self.assertLess(text.index("Content-Security-Policy"), text.index("<script"), "the policy has to come first")

    def test_program_names_no_address_but_namespaces(self):
        for _, text in pages():
            for address in re.findall(r"https?://[^\s\"'`)\\]+", text):
                self.assertRegex(address, r"^http://www\.w3\.org/", address)

    def test_each_view_has_its_place_in_the_documents(self):
        docs = os.path.join(web_packages.SOURCE_ROOT, "docs")
        for folder, document, least in (("views", "views.md", 8), ("live", "live.md", 10)):
            views = os.path.join(web_packages.WEB, "src", folder)
            source = "".join(open(os.path.join(views, name), encoding="utf-8").read() for name in sorted(os.listdir(views)))
            ids = re.findall(r"^  id: '([a-z-]+)',\n  title: ", source, re.M)
            self.assertGreaterEqual(len(ids), least)
            with open(os.path.join(docs, document), encoding="utf-8") as file:
                text = file.read()
            for view in ids:
                self.assertIn(f"`#/{view}", text, f"docs/{document} describes each view with its address")
            for image in re.findall(r"\]\((images/[^)]*)\)", text):
                self.assertLess(os.path.getsize(os.path.join(docs, image)), 150_000, image)

    def test_lock_file_names_packages_not_where_they_came_from(self):
        with open(os.path.join(web_packages.WEB, "package-lock.json"), encoding="utf-8") as file:
            lock = json.load(file)
        for name, entry in lock["packages"].items():
            self.assertNotIn("resolved", entry, name)
            if name:
                self.assertRegex(entry["integrity"], "^sha512-", name)


if __name__ == "__main__":
    unittest.main()
