"""The terminal view of `lockstep top`, driven in tmux: its keys, its pages, resizing, and the terminal afterwards."""

import os
import pathlib
import re
import secrets
import shutil
import subprocess
import unittest

from monitored import Watched  # First: it says where the others are.
from top_test import BINARY, Job
from waiting import PATIENCE_S, wait_until

KEYS = "q quit"  # The last line of the view.


class Tmux:
    """A terminal with a shell in it."""

    def __init__(self, test, width=120, height=30, **environment):
        if shutil.which("tmux") is None:
            raise unittest.SkipTest("tmux is not there: scripts/packages.txt has it")
        self.name = f"lockstep-test-{secrets.token_hex(4)}"
        clean = {name: value for name, value in os.environ.items()
                 if name not in ("TMUX", "LOCKSTEP_SOCKET", "NO_COLOR", "COLUMNS", "LINES")}
        self.environment = {**clean, "LC_ALL": "C.UTF-8", **environment}
        self.run("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), "bash --norc --noprofile")
        test.addCleanup(self.run, "kill-server")
        self.type("PS1='ready> '")
        self.key("Enter")

    def run(self, *words):
        return subprocess.run(["tmux", "-L", self.name, *words], env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False).stdout

    def type(self, text):
        self.run("send-keys", "-l", text)

    def key(self, *names):
        self.run("send-keys", *names)

    def screen(self, *flags):
        return self.run("capture-pane", "-p", *flags)

    def wait_for(self, pattern, gone=False):
        """The screen once it matches, or no longer does, and is drawn to its end: it is the same at two looks."""
        screen = None

        def is_drawn():
            nonlocal screen
            before, screen = screen, self.screen()
            return screen == before and bool(re.search(pattern, screen, re.MULTILINE)) != gone
        wait_until(is_drawn, lambda: f"{screen}\n{'still there' if gone else 'not seen'}: {pattern}")
        return screen


class TopViewTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Watched(cls._Later(cls))
        cls.job = Job(cls._Later(cls), "view", [(10, 10, 25, 5), (35, 10, 2, 5), (10, 10, 25, 5)])
        cls.job.wait_for_steps(cls.daemon, 30)

    class _Later:
        """What a test's addCleanup is, for the class."""

        def __init__(self, test_class):
            self.addCleanup = test_class.addClassCleanup

    def start(self, tmux, *flags):
        tmux.type(f"before=$(stty -g); {BINARY} top --socket {self.daemon.path} --job {self.job.name} {' '.join(flags)};"
                  " echo status=$?; [ \"$before\" = \"$(stty -g)\" ] && echo same=terminal")
        tmux.key("Enter")
        return tmux.wait_for(KEYS)

    def left(self, tmux, status):
        """That the shell is back, with what it showed before and the terminal as it was."""
        screen = tmux.wait_for("^same=terminal")
        self.assertRegex(screen, f"(?m)^status={status}$")
        self.assertIn("ready> ", screen)
        self.assertNotIn(KEYS, screen)
        self.assertEqual(tmux.run("display-message", "-p", "#{alternate_on} #{cursor_flag}").strip(), "0 1")
        tmux.type("echo $((6 * 7))")  # It echoes, by lines.
        tmux.key("Enter")
        tmux.wait_for("^42$")

    def rows(self, screen):
        """State by rank, in the order of the screen."""
        return re.findall(r"(?m)^[ ▶>!]*(\d+)\s+(?:\S+\s+)?(runs|waits|slow|stuck|silent|unheard)\s", screen)

    def test_ranks_pages_and_keys(self):
        tmux = Tmux(self)
        self.start(tmux)
        screen = tmux.wait_for(r"▶ +1 +\S+ +slow")
        self.assertIn(f"job {self.job.name} · 3 of 3 ranks", screen)
        self.assertEqual(self.rows(screen)[0], ("1", "slow"))
        self.assertEqual({rank for rank, _ in self.rows(screen)}, {"0", "1", "2"})
        self.assertIn("warning: rank 1 takes", screen)
        # It goes on by itself.
        step = re.search(r"slow +- +([\d,]+)", screen)[1]
        tmux.wait_for(rf"slow +- +{step}", gone=True)
        tmux.key("s")
        self.assertEqual([rank for rank, _ in self.rows(tmux.wait_for("sort: rank"))], ["0", "1", "2"])
        tmux.key("h")
        tmux.wait_for("No other key affects a job")
        tmux.key("x")
        tmux.wait_for("sort: rank")
        tmux.type("/slow")
        tmux.key("Enter")
        wait_until(lambda: self.rows(tmux.wait_for("filter: slow")) == [("1", "slow")], "the slow rank alone")
        tmux.key("Enter")
        # To its last line: a screen may be looked at while it is drawn.
        screen = tmux.wait_for(f"(?s)RANK 1 of job {self.job.name}.*PyTorch: - given out, - held")
        self.assertIn(f"pid {self.job.ranks[1].process.pid}", screen)
        self.assertRegex(screen, r"forward +\d\S* ms +\d+ % +█")
        tmux.key("d")
        tmux.wait_for(rf"Stacks of rank 1 \(pid {self.job.ranks[1].process.pid} on \S+\)\?.*y/n")
        tmux.key("n")
        tmux.wait_for(r"y/n", gone=True)
        self.assertNotIn("STACKS", tmux.screen())
        tmux.key("d")
        tmux.wait_for("y/n")
        tmux.key("y")
        screen = tmux.wait_for(rf"(?s)STACKS.*thread {self.job.ranks[1].process.pid} .*main")
        tmux.key("Escape")
        tmux.wait_for("filter: slow")
        tmux.key("Escape")
        tmux.wait_for("filter: slow", gone=True)
        tmux.key("n")
        tmux.wait_for(r"answers +3 +1 slow")
        tmux.key("Enter")
        self.assertEqual(len(self.rows(tmux.wait_for("filter: "))), 3)
        tmux.key("Escape")
        tmux.key("p")
        tmux.wait_for("PAUSED")
        tmux.key("q")
        self.left(tmux, 0)

    def test_the_size_changes(self):
        tmux = Tmux(self)
        self.start(tmux)
        for width, height in ((60, 12), (200, 50), (30, 5), (80, 24)):
            tmux.run("resize-window", "-x", str(width), "-y", str(height))
            # The last line holds the keys, nothing is wider than the terminal.
            def is_filled(height=height):
                lines = tmux.screen().split("\n")
                return len(lines) - 1 == height and KEYS in "\n".join(lines).rstrip("\n").split("\n")[-1]
            wait_until(is_filled, tmux.screen)
            self.assertLessEqual(max(map(len, tmux.screen().split("\n"))), width)
        tmux.wait_for(r"▶ +1 +slow")
        tmux.key("q")
        self.left(tmux, 0)

    def test_signals_leave_the_terminal_as_it_was(self):
        for signal_name, status in (("TERM", 143), ("INT", 130), ("HUP", 129), ("SEGV", 139), ("ABRT", 134)):
            with self.subTest(signal_name):
                tmux = Tmux(self)
                self.start(tmux)
                pid = self.pid_in(tmux)
                subprocess.run(["kill", f"-{signal_name}", pid], check=True)
                if signal_name == "INT":  # The shell takes that for its own affair, too, and drops the rest of the line.
                    tmux.wait_for(KEYS, gone=True)
                    tmux.type('echo status=$?; [ "$before" = "$(stty -g)" ] && echo same=terminal')
                    tmux.key("Enter")
                self.left(tmux, status)

    def pid_in(self, tmux):
        shell = tmux.run("display-message", "-p", "#{pane_pid}").strip()
        return pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text(encoding="utf-8").split()[0]

    def test_stopped_and_continued(self):
        tmux = Tmux(self)
        self.start(tmux)
        tmux.key("C-z")
        tmux.wait_for("Stopped")
        self.assertEqual(tmux.run("display-message", "-p", "#{alternate_on}").strip(), "0")
        tmux.type("fg")
        tmux.key("Enter")
        tmux.wait_for(r"▶ +1 +\S+ +slow")
        tmux.key("C-c")
        tmux.wait_for(KEYS, gone=True)
        self.assertEqual(tmux.run("display-message", "-p", "#{alternate_on} #{cursor_flag}").strip(), "0 1")

    def test_colour_goes_with_words_and_can_be_had_not(self):
        tmux = Tmux(self)
        self.start(tmux)
        tmux.wait_for(r"▶ +1 +\S+ +slow")
        self.assertRegex(tmux.screen("-e"), "\x1b\\[(?:[0-9;]*;)?33m")
        plain = Tmux(self, NO_COLOR="1")
        self.start(plain)
        plain.wait_for(r"▶ +1 +\S+ +slow")
        self.assertNotRegex(plain.screen("-e"), "\x1b\\[(?:[0-9;]*;)?3[0-7]m")

    def test_ascii_where_the_locale_has_no_more(self):
        tmux = Tmux(self, LC_ALL="C")
        self.start(tmux)
        screen = tmux.wait_for(r"> +1 +\S+ +slow")
        self.assertTrue(screen.isascii(), screen)

    def test_a_terminal_that_cannot_be_drawn_on(self):
        tmux = Tmux(self)
        for terminal in ("dumb", "nobody-knows-this"):
            tmux.type(f"clear; TERM={terminal} {BINARY} top --socket {self.daemon.path}; echo status=$?")
            tmux.key("Enter")
            screen = tmux.wait_for("^status=")
            self.assertIn("status=1", screen)
            self.assertIn("--once", screen)

    def test_a_daemon_that_dies_is_told_of(self):
        daemon = Watched(self)
        tmux = Tmux(self)
        tmux.type(f"{BINARY} top --host 127.0.0.1:{daemon.ports[0]},127.0.0.1:{self.daemon.ports[0]} --job {self.job.name};"
                  " echo status=$?")
        tmux.key("Enter")
        tmux.wait_for("2 of 2 nodes")
        daemon.process.kill()
        tmux.wait_for("127.0.0.1 does not answer|has not answered for")
        tmux.wait_for("1 of 2 nodes")
        tmux.key("q")
        tmux.wait_for("^status=4")


if __name__ == "__main__":
    unittest.main()
