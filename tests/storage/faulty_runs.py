"""Runs whose store fails them: at every request in turn, for some seconds, for good."""

import collections

from checks import expect, expect_equal
from faults import (CUT_BEFORE, CUT_IN_ANSWER, CUT_IN_REQUEST, INTERNAL_ERROR, LOSE_ANSWER,
                    LOSE_PART, SLOW_DOWN, TRUNCATE)
from faulty_store import FaultyStore
from store import BUCKET, Store
from stored_checkpoints import OBJECTS, expect_whole, strays, url
from training import HANG, STEPS, wait_until

FAULTS = (CUT_BEFORE, LOSE_ANSWER, INTERNAL_ERROR, CUT_IN_ANSWER, SLOW_DOWN, CUT_IN_REQUEST,
          TRUNCATE)
STRIDE = 4  # between two requests of a run that fail
MOST_REQUESTS = 1000
# A run's requests to a store: methods, and parts of paths and queries.
REQUESTS = {
    "read the lock": ("GET", r"/\.lock"), "write the lock": ("PUT", r"/\.lock"),
    "list": ("GET", "list-type"), "list uploads": ("GET", r"[?&]uploads"),
    "look for a dataset": ("HEAD", "dataset.yaml"),
    "look for a manifest": ("HEAD", "manifest.json"),
    "read a manifest": ("GET", "manifest.json"), "write a manifest": ("PUT", "manifest.json"),
    "look for a file": ("HEAD", "safetensors"), "read a file": ("GET", "safetensors"),
    "write a file": ("PUT", "safetensors$"), "begin an upload": ("POST", r"[?&]uploads"),
    "write a part": ("PUT", "partNumber"), "complete an upload": ("POST", "uploadId"),
    "delete": ("DELETE", ""),
}


def every_number(faulty, turn):
    """Each request fails in some turn, whatever it is."""
    for number in range(turn + 1, MOST_REQUESTS, STRIDE):
        faulty.fail_request(number, FAULTS[(number // STRIDE + turn) % len(FAULTS)])


def every_kind(faulty, turn):
    """The first request of each kind fails, in another way in each turn."""
    for number, (method, path) in enumerate(REQUESTS.values()):
        faulty.inject(FAULTS[(number + turn) % len(FAULTS)], method, path, nth=1)


def kind_of(request):
    found = [kind for kind, where in REQUESTS.items() if request.is_like(*where)]
    expect_equal(len(found), 1, f"kinds of {request}: {found}")
    return found[0]


def turn_of(renzan, store, faulty, plan, turn):
    """Three runs: the first begins; the second resumes and writes an increment; the third writes
    full checkpoints and removes the others. Returns which kinds of requests failed how."""
    hits, place = collections.Counter(), f"{plan.__name__}-{turn}"
    for number, (steps, incremental) in enumerate(((60, "true"), (100, "true"), (STEPS, "false"))):
        faulty.reset()
        plan(faulty, turn)
        keys = {"checkpoint.keep": 1, "checkpoint.incremental": incremental,
                "training.max_steps": steps, "checkpoint.stage": "turns" if turn % 2 else ""}
        run = renzan.start(f"{place}.{number}", url(place), store=faulty, keys=keys).end()
        if "could not be written" in run.log():
            run.fail("a single fault was too many")
        expect(faulty.count() < MOST_REQUESTS, "more requests than were planned for")
        hits.update((kind_of(each), each.fault) for each in faulty.log if each.fault)
    expect_equal(run.sha256(), renzan.expected, f"the model of {place}")
    expect_equal(strays(store, place), [], f"left in {place}")
    # An upload that was begun twice, because the first answer was lost, is left to the next run.
    renzan.expect_trained(renzan.start(f"{place}.again", url(place), store=store, keys=keys))
    expect_whole(store, place, keep=1)
    return hits


def every_request_fails(renzan, store):
    with FaultyStore(store) as faulty:
        hits = sum((turn_of(renzan, store, faulty, every_number, turn) for turn in range(STRIDE)),
                   collections.Counter())
        print(f"  {hits.total()} requests failed")
        for fault in FAULTS:
            expect(any(name == fault.name for _, name in hits), f"no fault '{fault.name}'")


def every_kind_fails(renzan, store):
    """Every kind of request fails in every way that can be told apart from the outside."""
    with FaultyStore(store) as faulty:
        hits = sum((turn_of(renzan, store, faulty, every_kind, turn)
                    for turn in range(len(FAULTS))), collections.Counter())
        missed = [f"{kind}: {fault.name}" for kind in REQUESTS for fault in FAULTS
                  if not hits[kind, fault.name]]
        expect_equal(missed, [], "faults that have not happened")


def requests_of_checkpoints(renzan, store):
    """Prints the requests, for information."""
    with FaultyStore(store) as faulty:
        before = collections.Counter()
        for steps, what in ((20, "to begin, and to end"), (60, "more with one full checkpoint"),
                            (100, "more to resume, with an increment")):
            faulty.reset()
            renzan.train(f"counted-{steps}", url("counted"), store=faulty,
                         keys={"training.max_steps": steps})
            counts = collections.Counter(map(kind_of, faulty.log))
            more = counts - (before if steps == 60 else collections.Counter())
            print(f"  requests {what}: {more.total()}: "
                  + ", ".join(f"{count} {kind}" for kind, count in more.items()), flush=True)
            before = counts


def store_comes_back(renzan, _):
    """The store is killed in the middle of an upload, and started after a run has asked for it in
    vain."""
    with Store() as store, FaultyStore(store) as faulty:
        rule = faulty.inject(HANG, "PUT", "partNumber=2", nth=1)
        run = renzan.start("patient", url("patient"), store=faulty).wait_for_fault(rule)
        store.kill()
        faulty.cut_all()
        before = faulty.count()
        wait_until(lambda: faulty.count() > before + 3, "requests in vain")
        store.start()
        renzan.expect_trained(run)
        expect_equal(run.count("could not be written"), 0, "checkpoints that failed")
        expect_whole(store, "patient")


def store_falls_silent(renzan, store):
    """The store falls silent in the middle of a request without closing the connection: the request
    is sent again."""
    silent = {"read the lock": None, "write a file": None}
    with FaultyStore(store) as faulty:
        for kind in silent:
            silent[kind] = faulty.inject(HANG, *REQUESTS[kind], nth=1)
        run = renzan.start("silent", url("silent"), store=faulty)
        renzan.expect_trained(run)
        for kind, rule in silent.items():
            expect_equal(rule.hits, 1, f"times that the store fell silent: {kind}")
        expect_equal(run.count("could not be written"), 0, "checkpoints that failed")
        expect_whole(store, "silent")
        faulty.cut_all()


def expect_one_lost(renzan, store, run, place, problem):
    """The run must lose one checkpoint, with one warning; whoever writes the next one removes what
    it has left."""
    renzan.expect_trained(run)
    expect_equal(run.count(f"step-.* could not be written: .*{problem}"), 1,
                 f"warnings that say '{problem}' in\n{run.log()}")
    expect_equal(run.count("could not be written"), 1, f"such warnings in\n{run.log()}")
    renzan.expect_trained(renzan.start(f"{place}.again", url(place), store=store))
    expect_whole(store, place)


def part_is_lost(renzan, store):
    """A part is lost that the store says it has."""
    with FaultyStore(store) as faulty:
        faulty.inject(LOSE_PART, *REQUESTS["write a part"], nth=1)
        run = renzan.start("part", url("part"), store=faulty)
        expect_one_lost(renzan, store, run, "part", "lost a part of this upload")


def upload_is_aborted(renzan, store):
    """Somebody else aborts an upload when all of its parts are there."""
    with FaultyStore(store) as faulty:
        rule = faulty.inject(HANG, *REQUESTS["complete an upload"], nth=1)
        run = renzan.start("aborted", url("aborted"), store=faulty).wait_for_fault(rule)
        for key, upload in store.client().uploads(BUCKET, "aborted/"):
            store.client().abort_upload(BUCKET, key, upload)
        faulty.cut_all()
        expect_one_lost(renzan, store, run, "aborted", "this upload was aborted")


def store_is_gone(renzan, _):
    """The store is gone for good from the middle of the second checkpoint on: that checkpoint
    fails, with one warning, and training ends without it."""
    place, keys = "gone", {"checkpoint.every_steps": 200}
    with Store() as store, FaultyStore(store) as faulty:
        # Written by another run, so that the second one is not in its way.
        renzan.train("gone-before", url(place), store=store,
                     keys=keys | {"training.max_steps": 220})
        keys = {"checkpoint.every_steps": 300}
        rule = faulty.inject(HANG, "PUT", OBJECTS, nth=1)
        run = renzan.start("gone", url(place), store=faulty, keys=keys, RENZAN_S3_RETRY_FOR="2s")
        run.wait_for_fault(rule)
        store.kill()
        faulty.cut_all()
        renzan.expect_trained(run)
        expect_equal(run.count("step-00000300 could not be written: .*; the last checkpoint is at "
                               "step 200"), 1, f"warnings about it in\n{run.log()}")
        expect_equal(run.count("could not be written"), 1, f"such warnings in\n{run.log()}")
        store.start()
        run = renzan.start("gone.again", url(place), store=store, keys=keys)
        run.wait_for("resuming from step-00000200")
        renzan.expect_trained(run)
        expect_equal(sorted(expect_whole(store, place)), ["step-00000200", "step-00000300"],
                     "checkpoints in the end")
