#!/usr/bin/env python3
"""The first page of docs/object_store.md, as a reader would try it: with a real store, a machine
that is gone in the middle, and the bits of an undisturbed run. `page_test.py RENZAN`; exits with 77
where there is no store."""

import os
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/kubernetes"))
from checks import expect, expect_equal
from page import Page
from store import Store
from stored_checkpoints import manifests
from training import environment_of_programs

ROWS = 100000
# Kills the command that it is given once that reports a complete checkpoint.
KILLER = """
import os, signal, subprocess, sys
run = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE, text=True, start_new_session=True)
for line in run.stderr:
    print(line, end="", file=sys.stderr)
    if "checkpoint step-" in line:
        break
os.killpg(run.pid, signal.SIGKILL)
sys.exit(128 + signal.SIGKILL if run.wait() < 0 else "it has ended before it was killed")
"""


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with Store() as store, tempfile.TemporaryDirectory(prefix="page.") as name:
        folder = pathlib.Path(name)
        (folder / "home").mkdir()
        (folder / "killer.py").write_text(KILLER)
        page = Page(ROOT / "docs/object_store.md", folder, environment_of_programs(
            folder, store.environment() | {"PATH": f"{program.parent}:{os.environ['PATH']}"}))
        page.run("renzan data import", [("--rows 1000000", f"--rows {ROWS}"),
                                        ("every_steps: 500", "every_steps: 50")])
        page.run("runs/here --workers 2", [
            ("timeout -s KILL 12 ", f"{sys.executable} killer.py "),
            ("|| true", "|| [ $? = 137 ]")])
        expect(not (folder / "runs/here").exists(), "its disk is still there")
        expect(manifests(store, "run-1"), "no checkpoint in the store")
        page.run("runs/elsewhere --workers 1",
                 [("--workers 1", "--workers 1 >elsewhere.log 2>&1")])
        said = (folder / "elsewhere.log").read_text()
        expect("resuming from step-" in said, said)
        page.run("runs/undisturbed", [("--run-dir runs/undisturbed",
                                       "--run-dir runs/undisturbed >undisturbed.log 2>&1")])
        models = [re.search(r"model sha256 (\w{64})|model \S+ sha256 (\w{64})",
                            (folder / f"{run}.log").read_text())
                  for run in ("elsewhere", "undisturbed")]
        expect(all(models), said)
        expect_equal(models[0].group(1, 2), models[1].group(1, 2), "sha256 of the models")
        expect_equal(page.left(), [], "steps of the page that nobody has run")


main()
