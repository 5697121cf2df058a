#!/usr/bin/env python3
"""What lies between a run and its store, and around them: TLS, clocks that are wrong, addresses,
credentials, and the end of a machine. `surroundings_test.py RENZAN`; exits with 77 where there is
no store."""

import concurrent.futures
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from checks import expect, expect_equal, play
from faults import EXPIRED_TOKEN, limit
from faulty_store import FaultyStore
from store import ADMIN, RENEWED, Store
from stored_checkpoints import MANIFESTS, expect_whole, manifests, url
from tls import Certificates, TlsStore
from training import FOREVER, HANG, Renzan, descendants, wait_until

HERE = pathlib.Path(__file__).resolve().parent
MINUTE = 60


def encrypted_runs(renzan, store):
    """TLS with the authority that AWS_CA_BUNDLE names, and only with that one."""
    if not shutil.which("openssl"):
        print("encrypted_runs: skipped, there is no openssl")
        return
    with tempfile.TemporaryDirectory(prefix="certificates.") as folder:
        certificates = Certificates(folder)
        trusted = {"AWS_CA_BUNDLE": str(certificates.authority)}
        with TlsStore(store, certificates.server) as tls:
            run = renzan.start("tls", url("tls"), store=tls, workers=2, **trusted)
            renzan.expect_trained(run)
            for bundle in ({}, {"AWS_CA_BUNDLE": f"{folder}/none.pem"},
                           {"AWS_CA_BUNDLE": str(certificates.other_host)}):
                said = renzan("checkpoint", "list", url("tls"), store=tls, code=78, **bundle)
                expect("certificate" in said and "AWS_CA_BUNDLE" in said, said)
        with TlsStore(store, certificates.other_host) as tls:
            said = renzan("checkpoint", "list", url("tls"), store=tls, code=78, **trusted)
            expect("certificate" in said and "127.0.0.1" in said, said)
        # Without encryption it is the same store.
        expect_whole(store, "tls")


def wrong_clocks(renzan, store):
    """If a clock is ten minutes off, nothing changes, not even who may write; if it is an hour off,
    one error says so."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        print("wrong_clocks: skipped, there is no C compiler")
        return
    library = renzan.folder / "wrong_clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, HERE / "wrong_clock.c",
                    "-ldl"], check=True)

    def clock(minutes):
        return {"LD_PRELOAD": str(library), "CLOCK_OFFSET": str(minutes * MINUTE)}

    def ten_minutes_off(minutes):
        place = f"clock{minutes}"
        with FaultyStore(store) as faulty:
            rule = faulty.inject(HANG, "PUT", r"step-(?!00000040)\d+/")
            run = renzan.start(f"{place}-1", url(place), store=faulty, workers=2,
                               keys=FOREVER | {"checkpoint.every_steps": 40}, **clock(minutes))
            run.wait_for_fault(rule)
            # It is alive: those whose clocks are right, or wrong the other way, wait for it in
            # vain.
            others = [renzan.start(f"{place}-other{offset}", url(place), store=store,
                                   **clock(offset)) for offset in (0, -minutes)]
            for other in others:
                expect(other.end(73).count("another run is writing"), other.log())
            expect(run.is_running(), f"it has ended:\n{run.log()}")
            run.kill()
        run = renzan.start(f"{place}-2", url(place), store=store, **clock(-minutes))
        renzan.expect_trained(run.wait_for("resuming from step-00000040"))
        expect_equal(run.count("waiting up to"), 0, f"waits in\n{run.log()}")
        expect_whole(store, place)

    with concurrent.futures.ThreadPoolExecutor() as threads:
        list(threads.map(ten_minutes_off, (-10, 10)))
    for minutes in (-60, 60):
        said = renzan(*renzan.train_words(f"hour{minutes}", url("hour")), code=78, store=store,
                      **clock(minutes))
        expect("this machine's clock says" in said and "the store's" in said, said)
        times = re.findall(r"(\d\d):(\d\d):\d\d", said)
        expect_equal(len(times), 2, f"times in {said}")


def other_addresses(renzan, store):
    """A bucket as part of the host's name, and a bucket with dots in its own name."""
    by_name = store.environment() | {
        "AWS_ENDPOINT_URL": store.endpoint.replace("127.0.0.1", "localhost")}
    store.create_bucket("a.bucket.with.dots")
    for name, place, where in (
            ("virtual", url("virtual"), by_name | {"RENZAN_S3_ADDRESSING": "virtual"}),
            ("dots", "s3://a.bucket.with.dots/run", store.environment())):
        renzan.train(f"{name}-1", place, store=where, keys={"training.max_steps": 60})
        run = renzan.start(f"{name}-2", place, store=where)
        renzan.expect_trained(run.wait_for("resuming from step-00000040"))
    # The store must have the objects where others see them.
    expect_whole(store, "virtual")


def credentials_of_a_profile(renzan, store):
    """Credentials from a file; they are in no process's arguments."""
    folder = renzan.folder / "home/.aws"
    folder.mkdir()
    (folder / "credentials").write_text(f"[trainer]\naws_access_key_id = {ADMIN[0]}\n"
                                        f"aws_secret_access_key = {ADMIN[1]}\n")
    where = {name: value for name, value in store.environment().items()
             if not name.startswith(("AWS_ACCESS", "AWS_SECRET"))}
    for name, others in (("profile", {"AWS_PROFILE": "trainer"}), ("keys", store.environment())):
        run = renzan.start(name, url(name), store=where | others, workers=2, keys=FOREVER)
        run.wait_for("checkpoint step-")
        processes = [run.pid, *descendants(run.pid)]
        arguments = [pathlib.Path(f"/proc/{pid}/cmdline").read_text() for pid in processes]
        expect(len(arguments) >= 3 and all("config.json" in each for each in arguments), arguments)
        expect(not any(secret in each for secret in ADMIN for each in arguments), arguments)
        run.signal(signal.SIGTERM)
        run.end(75)
        expect_whole(store, name)


def credentials_that_expire(renzan, store):
    """Credentials expire while a run writes checkpoints; sooner or later somebody writes new ones
    to the file."""
    file = renzan.folder / "home/rotated"

    def write(identity):
        new = file.with_suffix(".new")
        new.write_text(f"[default]\naws_access_key_id = {identity[0]}\n"
                       f"aws_secret_access_key = {identity[1]}\n")
        new.rename(file)

    for place, is_late in ("expire-renewed", False), ("expire-late", True):
        write(ADMIN)
        with FaultyStore(store) as faulty:
            run = renzan.start(place, url(place), store=faulty, keys=FOREVER,
                               AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None,
                               AWS_SHARED_CREDENTIALS_FILE=str(file))
            run.wait_for("checkpoint step-")
            if not is_late:
                write(RENEWED)
            refused = faulty.inject(EXPIRED_TOKEN, access_key=ADMIN[0])
            if is_late:
                run.wait_for("step-.* could not be written: .*the credentials of profile "
                             f"'default' of {file} have expired: renew them")
                write(RENEWED)
            wait_until(lambda: any(each.access_key == RENEWED[0] and each.is_like("PUT", MANIFESTS)
                                   and each.status == 200 for each in faulty.log),
                       "a checkpoint that the new credentials have written")
            run.signal(signal.SIGTERM)
            run.end(75)
            expect(refused.hits, "nothing was refused")
        expect_equal(run.count("could not be written") > 0, is_late,
                     f"whether a checkpoint was lost, in\n{run.log()}")
        expect_whole(store, place)
        renzan("checkpoint", "verify", url(place), store=store)


def notices(renzan, store):
    """What is written before a machine ends depends on how fast the store is, and is logged."""
    place = "notices"
    with FaultyStore(store) as faulty:
        faulty.inject(limit(4 << 20))
        run = renzan.start("notice", url(place), store=faulty, keys=FOREVER | {
            "checkpoint.every_steps": 0, "checkpoint.every": "100ms"}, RENZAN_GRACE_SECONDS="60")
        run.wait_for("checkpoint step-")
        run.signal(signal.SIGTERM)
        run.end(75)
    said = re.search(r"(\d+) s are left: an increment is written next, which takes ([\d.]+) s at the "
                     r"(\d+) MB/s of the last checkpoint; a full one would take ([\d.]+) s", run.log())
    expect(said, f"no choice in:\n{run.log()}")
    left, increment, rate, full = map(float, said.groups())
    expect(0 < left <= 60 and rate <= 5 and increment < full, said[0])
    expect_equal(manifests(store, place)[max(manifests(store, place))]["kind"], "incremental",
                 "the last checkpoint")


def main():
    with Store() as store, Renzan(sys.argv[1]) as renzan:
        play(encrypted_runs, renzan, store)
        play(wrong_clocks, renzan, store)
        play(other_addresses, renzan, store)
        play(credentials_of_a_profile, renzan, store)
        play(credentials_that_expire, renzan, store)
        play(notices, renzan, store)


main()
