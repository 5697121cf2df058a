"""Training on a dataset in a store while the store, the network or the machine fails."""

import random
import shutil
import threading

from checks import expect, expect_equal
from data_cached import THIRD
from data_imports import keys_below
from data_runs import FITS, url
from faults import (CUT_BEFORE, CUT_IN_ANSWER, CUT_IN_REQUEST, EXPIRED_TOKEN, INTERNAL_ERROR,
                    LOSE_ANSWER, SLOW_DOWN, TIME_TOO_SKEWED, TOO_MANY_REQUESTS, TRUNCATE, delay)
from faulty_store import FaultyStore
from store import BUCKET
from training import HANG

FAULTS = (CUT_BEFORE, LOSE_ANSWER, INTERNAL_ERROR, CUT_IN_ANSWER, SLOW_DOWN, CUT_IN_REQUEST,
          TRUNCATE, TOO_MANY_REQUESTS, delay(0.1))
STRIDE = 8  # between two requests that fail
KILLS = 10
TIGHT = 3  # MiB: two batches do not fit
IMPATIENT = {"RENZAN_S3_RETRY_FOR": "2s"}


def killed_runs(runs, store):
    """Killed at seeded requests, again and again, with a small cache; then it finishes."""
    cache, keys = runs.cache(TIGHT), {"checkpoint.every_steps": 5}
    words = {"order": "stored", "cache": cache, "keys": keys}
    moments = random.Random(7)
    for number in range(KILLS):
        with FaultyStore(store) as faulty:
            # The largest number of simultaneous requests is running, or was just answered.
            run = runs.start("killed", "mixed", store=faulty, workers=1 + number % 2, **words)
            faulty.wait_for_request("GET", r"\.npy$", moments.randrange(20, 90))
            run.kill()
        expect("trained" not in run.log(), f"it has ended before it was killed:\n{run.log()}")
    run = runs.train("killed", "mixed", **words)
    expect_equal(run.sha256(), runs.expected("mixed", "stored"), "the model of a run that was killed")
    cache.expect_sound("after runs that were killed")


def every_request_fails(runs, store):
    """Each request fails in some turn, and every kind of failure occurs."""
    happened = set()
    for turn in range(STRIDE):
        cache = runs.cache(THIRD)
        with FaultyStore(store) as faulty:
            for number in range(turn + 1, 1000, STRIDE):
                faulty.fail_request(number, FAULTS[(number // STRIDE + turn) % len(FAULTS)])
            runs.train_right(f"faulty-{turn}", "mixed", "stored", cache=cache, store=faulty,
                             steps=40, workers=1 + turn % 2)
            happened |= {request.fault for request in faulty.log}
        cache.expect_sound("after requests that failed")
    expect_equal({fault.name for fault in FAULTS} - happened, set(), "faults that did not happen")


def stores_that_are_away(runs, store):
    """Stores that are away for a while, and for good."""
    with FaultyStore(store) as faulty:
        hung = faulty.inject(HANG, "GET", r"\.npy$", nth=60)
        run = runs.start("away", "mixed", runs.cache(THIRD), "stored", store=faulty)
        run.wait_for_fault(hung)
        store.kill()
        faulty.clear()
        faulty.cut_all()
        begun = faulty.count()
        faulty.wait_for_request(count=begun + 3)
        store.start()
        expect_equal(run.end().sha256(), runs.expected("mixed", "stored"),
                     "the model of a run whose store was away")
        for fault, words, code in ((CUT_BEFORE, "is it running and reachable", 74),
                                   (SLOW_DOWN, "SlowDown", 74), (EXPIRED_TOKEN, "expired", 77),
                                   (TIME_TOO_SKEWED, "clock", 78)):
            faulty.clear()
            faulty.inject(fault, "GET", r"dense\.npy$")
            line = runs.train("gone", "mixed", runs.cache(FITS), store=faulty, variables=IMPATIENT,
                              code=code)
            expect("dense.npy" in line and words in line, line)
            shutil.rmtree(runs.folder / "gone", ignore_errors=True)


def damaged_data(runs, store):
    """Data that has changed in the store is not trained on."""
    runs("data", "synth", "--format", "dataset", "--rows", 140000, "--features", 4, "--multi-hot", 2,
         "--shard-rows", 50000, "--seed", 5, "--rows-per-table", 200, "--output", url("fragile"))
    client = store.client()
    objects = {key: client.get(BUCKET, key).body for key in keys_below(store, "fragile")}

    def key_of(end):
        return next(key for key in objects if key.endswith(end))

    def flipped(content, at):
        return content[:at] + bytes([content[at] ^ 1]) + content[at + 1:]

    def train(mebibytes, code):
        shutil.rmtree(runs.folder / "fragile", ignore_errors=True)
        return runs.train("fragile", "fragile", runs.cache(mebibytes), "stored", code=code,
                          variables=IMPATIENT)

    for end, mebibytes in (("00001/dense.npy", FITS), ("00002/ids.npy", THIRD),
                           ("00001/M2.values.npy", THIRD), ("00000/M1.offsets.npy", FITS),
                           ("00002/checksums.npy", FITS), ("dataset.yaml", FITS)):
        key = key_of(end)
        content = objects[key]
        damages = {"flipped": flipped(content, len(content) * 3 // 4),
                   "short": content[:len(content) // 2], "gone": None}
        for damage, body in damages.items():
            if body is None:
                client.delete(BUCKET, key)
            else:
                client.put(BUCKET, key, body)
            line = train(mebibytes, 66 if body is None else 65)
            expect(url(key) in line, f"{damage} {end}: {line}")
        client.put(BUCKET, key, content)
    run = train(THIRD, 0)
    expect_equal(run.sha256(), runs.expected("mixed", "stored"), "the model of what was mended")


def data_that_changes(runs, store):
    """Data that changes during training: the first steps were right, and no later one is wrong."""
    client = store.client()
    key = next(key for key in keys_below(store, "fragile") if key.endswith("00002/dense.npy"))
    content = client.get(BUCKET, key).body
    for body, code in ((content[:-5] + b"wrong", 65), (None, 66)):
        with FaultyStore(store) as faulty:
            hung = faulty.inject(HANG, "GET", r"00001/label\.npy$", nth=3)
            run = runs.start("changing", "fragile", runs.cache(THIRD), "stored", store=faulty,
                             variables=IMPATIENT)
            run.wait_for_fault(hung)
            if body:
                client.put(BUCKET, key, body)
            else:
                client.delete(BUCKET, key)
            faulty.clear()
            faulty.cut_all()
            run.end(code)
            expect("step " in run.log() and "model sha256" not in run.log(), run.log())
            expect(url(key) in run.log(), run.log())
        client.put(BUCKET, key, content)
        shutil.rmtree(runs.folder / "changing")
