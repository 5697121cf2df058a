"""Makes datasets with the `renzan` program."""

from __future__ import annotations

import os
import pathlib
import subprocess


def run(*words: object, cwd: pathlib.Path | None = None) -> None:
    """Runs `renzan WORDS...`, which must succeed."""
    done = subprocess.run([os.environ["RENZAN"], *map(str, words)], text=True, cwd=cwd,
                          capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise AssertionError(f"renzan {words}: {done.returncode}\n{done.stderr}")


def generated(directory: pathlib.Path, rows: int = 1000, multi_hot: int = 2) -> pathlib.Path:
    """A generated dataset in four shards: 13 dense, 3 one-hot features, and multi-hot ones."""
    run("data", "synth", "--rows", rows, "--features", 3, "--multi-hot", multi_hot,
        "--shard-rows", 3 * rows // 10, "--format", "dataset", "--output", directory)
    return directory


def imported(directory: pathlib.Path, csv: str, columns: dict[str, str],
             *flags: str) -> pathlib.Path:
    """A dataset imported from CSV text, with each column's line of the schema."""
    source, schema = directory.with_suffix(".csv"), directory.with_suffix(".yaml")
    source.write_text(csv)
    schema.write_text("columns:\n" + "".join(f"  \"{name}\": {line}\n"
                                             for name, line in columns.items()))
    run("data", "import", "--format", "csv", "--schema", schema, "--output", directory, *flags,
        source)
    return directory


def unlabelled(directory: pathlib.Path) -> pathlib.Path:
    """A dataset of two rows without labels, whose one feature `a` has the ids 2 and 1."""
    columns = {"a": "{role: categorical}"}
    training = imported(directory.with_name("labelled"), "label,a\n1,x\n0,x\n",
                        {"label": "{role: label}", **columns},
                        "--vocabulary", "threshold:1", "--unseen", "0")
    return imported(directory, "a\nx\ny\n", columns, "--vocabulary-from", training)
