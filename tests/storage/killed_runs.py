"""Runs that lose their machine, or are told to stop, and go on from nothing but the store."""

import json
import shutil
import signal

from checks import expect, expect_equal
from faulty_store import FaultyStore
from store import BUCKET
from stored_checkpoints import (MANIFESTS, OBJECTS, expect_whole, manifests, strays, uploads,
                                url)
from training import FOREVER, HANG, send


def kill_when(run, rule):
    """Kills the run once the rule has hit."""
    run.wait_for_fault(rule).kill()
    shutil.rmtree(run.directory)


def resumed_from(run):
    run.wait_for("resuming from step-")
    return run.log().partition("resuming from ")[2].split()[0]


def steps_of(found):
    return sorted(manifest["step"] for manifest in found.values())


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def newest(store, place):
    return max(manifests(store, place))


def loses_its_machines(renzan, store):
    """Two workers are killed in the middle of an increment, then a single one that has uploaded
    everything but the manifest; three workers finish."""
    place, keys, last = "moved", {"checkpoint.keep": 100}, "step-00000080"
    for steps in 60, 100:
        run = renzan.train(f"until-{steps}", url(place), store=store, workers=2,
                           keys=keys | {"training.max_steps": steps})
        shutil.rmtree(run.directory)
    expect_equal([manifest["kind"] for _, manifest in sorted(manifests(store, place).items())],
                 ["full", "incremental"], "kinds")
    with FaultyStore(store) as faulty:
        rule = faulty.inject(HANG, "PUT", OBJECTS)
        run = renzan.start("first", url(place), store=faulty, workers=2, keys=keys)
        expect_equal(resumed_from(run), last, "resumed by two workers")
        kill_when(run, rule)
        expect_equal(newest(store, place), last, "the newest after a kill before the files")
        faulty.clear()
        rule = faulty.inject(HANG, "PUT", MANIFESTS, nth=1)
        run = renzan.start("second", url(place), store=faulty, keys=keys)
        expect_equal(resumed_from(run), last, "resumed by one worker")
        kill_when(run, rule)
        expect_equal(newest(store, place), last, "the newest after a kill before the manifest")
        expect(strays(store, place), "what was killed has left nothing")
    run = renzan.start("third", url(place), store=store, workers=3,
                       keys=keys | {"checkpoint.stage": "third-stage"})
    expect_equal(resumed_from(run), last, "resumed by three workers")
    renzan.expect_trained(run)
    expect_whole(store, place, keep=100)
    expect_equal(files_in(renzan.folder / "third-stage"), [], "files left on their way")


def verbs(renzan, store):
    """Verbs on what the previous runs have left, and on a run on disk with the same first
    checkpoint."""
    place, first = url("moved"), "step-00000040"
    names = sorted(manifests(store, "moved"), reverse=True)
    renzan.train("disk", "", keys={"checkpoint.keep": 100})
    listed = json.loads(renzan("checkpoint", "list", "--json", place, store=store))
    expect_equal([(entry["name"], entry["problem"]) for entry in listed],
                 [(name, None) for name in names], "list")
    expect("incremental" in renzan("checkpoint", "list", place, store=store), "no table")
    said = renzan("checkpoint", "verify", place, store=store)
    expect_equal(said.count("valid: "), len(names), f"verified in\n{said}")
    for a, b, code in ((f"{place}/{first}", f"disk/checkpoints/{first}", 0),
                       (f"{place}/{first}", f"{place}/{names[0]}", 1), (place, place, 0),
                       ("third", "reference", 0)):
        renzan("checkpoint", "diff", a, b, store=store, code=code)

    evaluated = {renzan("eval", checkpoint, "--data", "data", store=store)
                 for checkpoint in (f"{place}/{first}", f"disk/checkpoints/{first}")}
    expect(len(evaluated) == 1, f"evaluations: {evaluated}")

    started = [renzan.train(f"from-{name}", "", store=store, workers=workers,
                            keys={"training.initialize_from": source}).sha256()
               for name, workers, source in (("store", 2, f"{place}/{first}"),
                                             ("disk", 1, f"disk/checkpoints/{first}"))]
    expect_equal(started[0], started[1], "models that started from the first checkpoint")

    exported = {}
    for source, target in ((f"{place}/{first}", "store.safetensors"),
                           (f"disk/checkpoints/{first}", "disk.safetensors"),
                           (f"{place}/{first}", f"{url('exports')}/first.safetensors"),
                           (f"disk/checkpoints/{first}", f"{url('exports')}/disk.safetensors")):
        renzan("checkpoint", "export", source, "--output", target, store=store)
        key = target.removeprefix(url(""))
        exported[target] = (store.client().get(BUCKET, key).body if key != target
                            else (renzan.folder / target).read_bytes())
    expect(len(set(exported.values())) == 1 and exported["disk.safetensors"],
           f"exports differ: {[(target, len(data)) for target, data in exported.items()]}")
    renzan("checkpoint", "export", f"{place}/{names[0]}",
           "--output", f"{url('exports')}/newest.safetensors", store=store)
    renzan("checkpoint", "export", f"{place}/{first}",
           "--output", f"{url('exports')}/first.safetensors",
           store=store, code=73)
    expect_equal(uploads(store, "exports"), [], "uploads of exports")

    copy = renzan.folder / "downloaded" / first
    copy.mkdir(parents=True)
    for key in store.client().keys(BUCKET, f"moved/{first}/"):
        (copy / key.split("/")[-1]).write_bytes(store.client().get(BUCKET, key).body)
    renzan("checkpoint", "verify", str(copy))
    renzan("checkpoint", "diff", str(copy), f"disk/checkpoints/{first}")


def removes_old_ones(renzan, store):
    """Successive runs that each write one checkpoint, and keep one and its base, at a place whose
    name has to be encoded."""
    place = "kept/here & ü+%41#?"
    for number in range(1, 6):
        keys = {"checkpoint.keep": 1, "training.max_steps": 40 * number + 20,
                "checkpoint.incremental": str(number < 4).lower()}
        run = renzan.start(f"kept-{number}", "", store=store, keys=keys,
                           RENZAN_CHECKPOINT_DIR=f"{url(place)}//").end()
        expect_equal(run.checkpoints(), [40 * number], "checkpoints of one run")
        wanted = {40, 40 * number} if number < 4 else {40 * number}
        expect_equal(steps_of(expect_whole(store, place, keep=1)), sorted(wanted),
                     f"kept by run {number}")


def clears_what_was_killed(renzan, store):
    """Killed in the middle of an upload, and before a manifest: the next run removes what is left,
    also from the disk where files wait for their upload."""
    stage = renzan.folder / "stage"
    with FaultyStore(store) as faulty:
        for name, path, keys in (("part", "/.*partNumber=2", {}), ("manifest", MANIFESTS, {}),
                                 ("staged", "/.*partNumber=2", {"checkpoint.stage": stage})):
            place = f"killed-{name}"
            kill_when(renzan.start(place, url(place), store=faulty, keys=keys),
                      faulty.inject(HANG, "PUT", f"/{place}{path}"))
            expect(strays(store, place) and not manifests(store, place),
                   f"killed before a {name}, it has left {strays(store, place)}")
            expect_equal(len(uploads(store, place)), int(name != "manifest"), "unfinished uploads")
            expect_equal(bool(files_in(stage)), name == "staged", "files on their way")
            renzan.expect_trained(renzan.start(f"{place}.again", url(place), store=store,
                                               keys=keys))
            expect_whole(store, place)
            expect_equal(files_in(stage), [], "files left on their way")


def corrupt(renzan, store):
    """A checkpoint that does not match its manifest is set aside, and an older one is used."""
    place, client = "moved", store.client()
    *_, older, name = sorted(manifests(store, place))
    key = next(key for key in client.keys(BUCKET, f"{place}/{name}/") if "dense" in key)
    content = bytearray(client.get(BUCKET, key).body)
    content[-1] ^= 1
    client.put(BUCKET, key, bytes(content))
    renzan("checkpoint", "verify", url(f"{place}/{name}"), store=store, code=65)
    run = renzan.start("after-corruption", url(place), store=store, keys={"checkpoint.keep": 100})
    expect_equal(resumed_from(run), older, "resumed instead of what is corrupt")
    renzan.expect_trained(run)
    kept = client.keys(BUCKET, f"{place}/{name}/")
    expect(key in kept and f"{place}/{name}/manifest.json.corrupt" in kept,
           f"of what is corrupt there is only {kept}")


def signals(renzan, store):
    """SIGUSR1 requests a checkpoint; SIGTERM, even twice, the last one."""
    place, keys = "signals", FOREVER | {"checkpoint.every_steps": 0}
    run = renzan.start("asked", url(place), store=store, workers=2, keys=keys).wait_for_steps()
    send(run.workers()[-1], signal.SIGUSR1)
    run.wait_for("checkpoint step-.*full").wait_for_steps()
    expect_equal(steps_of(manifests(store, place)), run.checkpoints(), "after SIGUSR1")
    send(run.workers()[-1], signal.SIGTERM)
    run.wait_for("stop requested")
    run.signal(signal.SIGTERM)
    run.end(75)
    stopped = run.status()
    expect_equal((stopped["state"], stopped["last_checkpoint"]["step"]),
                 ("stopped", stopped["step"]), "the last checkpoint's step in status.json")
    expect_equal(steps_of(expect_whole(store, place)), run.checkpoints(), "after SIGTERM")
    expect_equal(run.checkpoints()[-1], stopped["step"], "the step of the last checkpoint")
    keys = {"training.max_steps": stopped["step"] + 20, "training.epochs": 1_000_000}
    models = {renzan.train("stopped.again", url(place), store=store, workers=3, keys=keys).sha256(),
              renzan.train("undisturbed", "", keys=keys).sha256()}
    expect_equal(len(models), 1, f"models after {stopped['step'] + 20} steps")
