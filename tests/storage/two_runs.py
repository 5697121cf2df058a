"""Two runs for one directory; only one may write."""

import signal

from checks import expect, expect_equal
from faults import at_one_moment
from faulty_store import FaultyStore
from store import ADMIN, RENEWED
from stored_checkpoints import MANIFESTS, OBJECTS, etags, expect_whole, manifests, url
from training import FOREVER, HANG, wait_until

WAITS = "waiting up to .* to see whether another run still writes here"


def second_run(renzan, store):
    """The second run is refused as long as the first one is alive, even if that makes no
    progress."""
    place = "two"
    with FaultyStore(store) as faulty:
        rule = faulty.inject(HANG, "PUT", OBJECTS)
        first = renzan.start("one", url(place), store=faulty).wait_for_fault(rule)
        second = renzan.train("two", url(place), store=store, code=73)
        if not second.count(f"^error: another run is writing to {url(place)}: process {first.pid} "
                            r"on \S+, run directory one; "):
            second.fail("does not say by whom it was refused")
        expect(first.is_running(), f"the first run has ended:\n{first.log()}")
        expect_equal(sorted(manifests(store, place)), [], "checkpoints")
        first.kill()
    # Nobody waits for a process of this machine that is gone, nor for one that has ended well.
    for name in ("after-kill", "after-stop", "after-another"):
        run = renzan.start(name, url(place), store=store,
                           keys=FOREVER | {"checkpoint.every_steps": 0}).wait_for_steps()
        expect_equal(run.count(WAITS), 0, f"waits in\n{run.log()}")
        run.signal(signal.SIGTERM)
        run.end(75)
    expect_whole(store, place)


def at_the_same_moment(renzan, store):
    """Both write the lock at the same moment, where there is none, and where an earlier run left
    its own."""
    place, others = "moment", {"checkpoint.every_steps": 0}
    for turn in range(3):
        with FaultyStore(store) as faulty:
            faulty.inject(at_one_moment(2), "PUT", r"/\.lock", times=2)
            runs = [renzan.start(f"{place}-{turn}-{key}", url(place), store=faulty,
                                 keys=FOREVER | others, AWS_ACCESS_KEY_ID=key,
                                 AWS_SECRET_ACCESS_KEY=secret) for key, secret in (ADMIN, RENEWED)]
            loser = wait_until(lambda: next((run for run in runs if not run.is_running()), None),
                               "one of two runs is refused")
            expect(loser.end(73).count("^error: another run is writing to "), loser.log())
            winner = runs[1 - runs.index(loser)].wait_for_steps()
            first = faulty.requests("PUT", r"/\.lock")[:2]
            expect_equal({each.access_key for each in first}, {ADMIN[0], RENEWED[0]}, "who wrote")
            expect_equal(sorted(each.status for each in first), [200, 412], "at one moment")
            winner.signal(signal.SIGTERM)
            winner.end(75)
    expect_whole(store, place)


def paused(renzan, store, workers, path):
    """A run is paused while it writes its checkpoint of step 80, until another run takes its place.
    When it continues, it ends, and publishes nothing."""
    place = f"paused-{workers}"
    renzan.train(f"{place}.before", url(place), store=store, keys={"training.max_steps": 60})
    with FaultyStore(store) as faulty:
        rule = faulty.inject(HANG, "PUT", path)
        run = renzan.start(place, url(place), store=faulty, workers=workers,
                           keys={"comm.timeout_seconds": 3600},
                           RENZAN_S3_RETRY_FOR="1h").wait_for_fault(rule)
        run.pause()
        # If both have a checkpoint of the same step, the second is refused anyway.
        other = renzan.start(f"{place}.other", url(place), store=store,
                             keys={"checkpoint.every_steps": 60})
        other.wait_for(WAITS).wait_for("resuming from step-00000040")
        renzan.expect_trained(other)
        expect_whole(store, place)
        before = etags(store, place)
        faulty.clear()
        faulty.cut_all()
        run.go_on()
        run.end(73)
    if not run.count(f"{url(place)} was taken over by another run .process {other.pid} on "):
        run.fail("does not say by whom it was replaced")
    after = etags(store, place)
    expect_equal({key: tag for key, tag in after.items() if key in before}, before,
                 "what the other run has left")
    expect_equal([key for key in sorted(set(after) - set(before)) if key.endswith(".json")], [],
                 "manifests of a run whose lock another one has")
    # The next run removes files that it was still writing.
    renzan.expect_trained(renzan.start(f"{place}.again", url(place), store=store))
    expect_whole(store, place)


def paused_while_it_uploads(renzan, store):
    paused(renzan, store, 2, OBJECTS)


def paused_while_it_publishes(renzan, store):
    paused(renzan, store, 1, MANIFESTS)
