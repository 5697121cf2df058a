"""Runs programs to their end for benchmarks, and reads what training reported."""
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RENZAN = ROOT / "build/release/bin/renzan"


def run(*command, stderr=subprocess.PIPE):
    """Returns the command's output; if it fails, exits with its error output."""
    command = [str(word) for word in command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
                          text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stderr or ''}")
    return done.stdout


def train(config, *flags):
    """The records of a run's metrics.jsonl."""
    with tempfile.TemporaryDirectory() as directory:
        run(RENZAN, "train", config, "--run-dir", f"{directory}/run", *flags)
        with open(f"{directory}/run/metrics.jsonl") as file:
            return [json.loads(line) for line in file]


def samples_per_second(records, warm_up=0):
    """The rate after a warm-up of this share of the windows, at least one."""
    rates = [record["train/samples_per_second"] for record in records
             if "train/samples_per_second" in record]
    return statistics.harmonic_mean(rates[max(1, round(warm_up * len(rates))):])
