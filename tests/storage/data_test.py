#!/usr/bin/env python3
"""Datasets in a real object store: importing them there, and training on them through a cache. A
trained model is that of the same data on disk, to the bit, whatever goes wrong between.

    tests/storage/data_test.py build/release/bin/renzan
    tests/storage/data_test.py build/release/bin/renzan imports small_caches     some of its parts
"""

import sys

sys.dont_write_bytecode = True
import data_bad_input
import data_cached
import data_disturbed
import data_imports
from checks import play
from data_runs import DataRuns
from store import Store

SCENARIOS = (
    data_imports.imports, data_imports.skipped_rows, data_imports.damaged_objects,
    data_imports.others_keep_their_own,
    data_imports.faster_imports, data_imports.waiting_imports, data_imports.killed_imports,
    data_imports.stopped_imports,
    data_cached.whole_caches, data_cached.small_caches, data_cached.partial_reads,
    data_cached.evaluations, data_cached.sample_weights, data_cached.keys,
    data_cached.resumed_runs, data_cached.shared_caches, data_cached.lowered_limits,
    data_cached.many_files,
    data_disturbed.killed_runs, data_disturbed.every_request_fails,
    data_disturbed.stores_that_are_away, data_disturbed.damaged_data,
    data_disturbed.data_that_changes,
    data_bad_input.places, data_bad_input.wrong_settings, data_bad_input.rights,
    data_bad_input.full_disks)


def main():
    names = sys.argv[2:] or [scenario.__name__ for scenario in SCENARIOS]
    with Store() as store, DataRuns(sys.argv[1], store) as runs:
        for scenario in SCENARIOS:
            if scenario.__name__ in names:
                play(scenario, runs, store)


if __name__ == "__main__":
    main()
