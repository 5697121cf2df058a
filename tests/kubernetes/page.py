"""A page of commands: each block of a Markdown file that is marked as `sh` is a step, which a test runs
as the page says it."""

import re
import subprocess


class Page:
    def __init__(self, path, folder, environment):
        """Commands run in `folder`, with this environment."""
        self._blocks = re.findall(r"^```sh\n(.*?)^```$", path.read_text(), re.M | re.S)
        self._left = list(self._blocks)
        self._folder, self._environment = folder, environment

    def run(self, part, replaced=()):
        """Runs the one block that contains `part`; returns what it prints. `replaced` is [(the
        page's text, ours)] for what the page leaves to the reader."""
        found = [block for block in self._blocks if part in block]
        if len(found) != 1:
            raise AssertionError(f"the page has {len(found)} blocks with '{part}'")
        if found[0] in self._left:
            self._left.remove(found[0])
        block = found[0]
        for old, new in replaced:
            if old not in block:
                raise AssertionError(f"the page lacks '{old}'")
            block = block.replace(old, new)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=self._folder,
                              env=self._environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"the page's step '{part}' has failed with {done.returncode}:\n"
                                 f"{block}{done.stdout}{done.stderr}")
        return done.stdout

    def left(self):
        """Blocks that have not been run."""
        return self._left
