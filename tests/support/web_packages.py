"""The npm packages of web/, installed once into the build folder from the lock file; and what runs with them."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import unittest

SOURCE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WEB = os.path.join(SOURCE_ROOT, "web")
BUILD = os.environ.get("LOCKSTEP_BUILD", os.path.join(SOURCE_ROOT, "build", "release"))
INSTALLED = os.path.join(BUILD, "web")
MANIFESTS = ("package.json", "package-lock.json", ".npmrc")
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "ECONNRESET", "ERR_SOCKET_TIMEOUT", "network")


def need(program):
    path = shutil.which(program)
    if path is None:
        raise unittest.SkipTest(f"lacks {program} (scripts/packages.txt, group test)")
    return path


def packages():
    """Folder whose node_modules has what the lock file names. Skips by name where there is no npm or no registry."""
    need("node")
    npm = need("npm")
    os.makedirs(INSTALLED, exist_ok=True)
    digest = hashlib.sha256()
    for name in MANIFESTS:
        with open(os.path.join(WEB, name), "rb") as file:
            digest.update(file.read())
    stamp = os.path.join(INSTALLED, "installed")
    with open(os.path.join(INSTALLED, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Tests of one build run at the same time.
        if os.path.exists(stamp) and open(stamp).read() == digest.hexdigest():
            return INSTALLED
        for name in MANIFESTS:
            shutil.copy(os.path.join(WEB, name), INSTALLED)
        done = subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=INSTALLED, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400)
        if done.returncode != 0:
            if any(word in done.stdout for word in UNREACHABLE):
                raise unittest.SkipTest("npm cannot reach its registry: " + done.stdout.strip()[-300:])
            raise AssertionError("npm ci failed:\n" + done.stdout)
        with open(stamp, "w") as file:
            file.write(digest.hexdigest())
    return INSTALLED


def browser():
    """Path of Debian's Chromium; skips by name without it."""
    return need("chromium")


def run_node(script, *arguments, timeout=900, inside=(), **variables):
    """Runs a script of tests/web with the packages; its output is the message when it fails. `inside`: a command that runs it elsewhere."""
    environment = dict(os.environ, **variables, LOCKSTEP_WEB=packages(), LOCKSTEP_CHROMIUM=shutil.which("chromium") or "")
    done = subprocess.run([*inside, need("node"), os.path.join(SOURCE_ROOT, "tests", "web", script), *arguments], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    if done.returncode != 0:
        raise AssertionError(f"{script} ended with {done.returncode}:\n{done.stdout[-8000:]}")
    return done.stdout
