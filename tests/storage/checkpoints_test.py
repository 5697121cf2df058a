#!/usr/bin/env python3
"""Checkpoints in a real object store: what runs leave there when they, their machines, their store
or their users fail. `checkpoints_test.py RENZAN [SCENARIO...]`; exits with 77 where there is no
store."""

import concurrent.futures
import sys

sys.dont_write_bytecode = True
from bad_input import bad_input
from checks import expect, play
from faulty_runs import (every_kind_fails, every_request_fails, part_is_lost,
                         requests_of_checkpoints, store_comes_back, store_falls_silent,
                         store_is_gone, upload_is_aborted)
from killed_runs import (clears_what_was_killed, corrupt, loses_its_machines, removes_old_ones,
                         signals, verbs)
from private_runs import private_run_directories
from store import BUCKET, Store
from training import SECRETS, Renzan
from two_runs import (at_the_same_moment, paused_while_it_publishes, paused_while_it_uploads,
                      second_run)

# Each group runs in a thread of its own, because most of them mostly wait.
GROUPS = (
    (paused_while_it_uploads,), (paused_while_it_publishes,), (second_run, at_the_same_moment),
    (private_run_directories,), (every_kind_fails,), (every_request_fails,),
    (store_comes_back, store_is_gone), (store_falls_silent,),
    (part_is_lost, upload_is_aborted),
    (loses_its_machines, verbs, corrupt),
    (removes_old_ones, clears_what_was_killed, signals, requests_of_checkpoints), (bad_input,),
)


def tells_no_secrets(renzan, store):
    """Secrets must be neither in files nor in the store."""
    texts = {path: path.read_bytes() for path in renzan.folder.rglob("*")
             if path.is_file() and renzan.folder / "data" not in path.parents}
    texts |= {key: store.client().get(BUCKET, key).body for key in store.client().keys(BUCKET)
              if key.endswith((".json", ".lock"))}
    expect(len(texts) > 10, f"only {len(texts)} files")
    for where, text in texts.items():
        for secret in SECRETS:
            expect(secret.encode() not in text, f"'{secret}' in {where}")


def failure_of(scenarios, *places):
    """The error of the first scenario that fails; nothing if none does."""
    try:
        for scenario in scenarios:
            play(scenario, *places)
    except SystemExit as failure:
        return f"{scenario.__name__}: {failure}"
    return None


def main():
    program, *names = sys.argv[1:]
    groups = [group for group in GROUPS
              if not names or any(scenario.__name__ in names for scenario in group)]
    expect(groups, f"no scenario is called {names}")
    with Store() as store, Renzan(program) as renzan:
        with concurrent.futures.ThreadPoolExecutor(len(groups)) as threads:
            failures = [*threads.map(lambda group: failure_of(group, renzan, store), groups),
                        failure_of([tells_no_secrets], renzan, store)]
        failures = [failure for failure in failures if failure]
    expect(not failures, "\n".join(["", *failures]))


if __name__ == "__main__":
    main()
