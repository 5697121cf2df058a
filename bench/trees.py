"""This working tree and another commit's, for benchmarks that compare the two."""
import subprocess

from commands import ROOT

WORKING_TREE = "working tree"


def trees_against(revision, folder):
    """{"0641edc": its tree, unpacked below `folder`, "working tree": ROOT}."""
    commit = subprocess.run(["git", "rev-parse", "--short", revision], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.strip()
    before = folder / "before"
    before.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", before], input=archive.stdout, check=True)
    return {commit: before, WORKING_TREE: ROOT}


def alternating(trees, rounds):
    """The trees, `rounds` times both: each comes first in every second round, because the machine
    may change meanwhile."""
    for round_ in range(rounds):
        yield from list(trees.items())[::-1 if round_ % 2 else 1]


def configure(source, folder, environment=None):
    """A release build of the tree `source` in `folder`, for ninja."""
    subprocess.run(["cmake", "--preset", "release", "-B", folder], cwd=source, check=True,
                   stdout=subprocess.DEVNULL, env=environment)


def build(folder, targets, environment=None):
    subprocess.run(["ninja", "-C", folder, *targets], check=True, stdout=subprocess.DEVNULL,
                   env=environment)
