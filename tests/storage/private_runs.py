"""Workers that share nothing but the store, not even a run directory, as on different machines."""

import os
import re
import socket

from checks import expect, expect_equal
from stored_checkpoints import expect_whole, url
from training import STEPS, Run

# Starts a worker with a run directory that only it sees.
ALONE = 'mkdir -p "$0" && mount -t tmpfs none "$0" && exec "$@"'
LONGER = {"training.max_steps": STEPS + 50, "training.epochs": 100}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def train(renzan, store, name, place, keys=None, code=0):
    """Worker 0 of a run, started by a launcher for each of two workers; trains to the end."""
    place_of = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    command = [renzan.program, *renzan.train_words(f"{name}/run", url(place), keys=keys)]
    runs = []
    for rank in (0, 1):
        alone = ["unshare", "--mount", "sh", "-c", ALONE, renzan.folder / name]
        runs.append(Run(f"{name}-{rank}", [*(alone if rank else []), *command],
                        renzan.environment(store, RANK=str(rank), **place_of), renzan.folder))
    for run in runs:
        run.end(code)
    return runs[0]


def private_run_directories(renzan, store):
    """The model is then beside the checkpoints, and is found there."""
    if os.geteuid() != 0:
        print("private_run_directories: skipped, only root can give processes directories of their own")
        return
    place = "private"
    model = f"{url(place)}/model"
    run = train(renzan, store, "private", place)
    expect(f"model {model} sha256 {renzan.expected}" in run.log(), run.log())
    expect(not (renzan.folder / "private/run/model").exists(), "a model in the run directory")
    expect(renzan.expected in renzan("checkpoint", "verify", model, store=store), "its sha256")
    for words in (url(place), "private/run"):
        listed = renzan("checkpoint", "list", words, store=store).splitlines()
        expect_equal(listed[1].split()[:2], ["model", str(STEPS)], "the first of those listed")
    expect_whole(store, place)
    # Other machines know, too, that it is finished.
    run = train(renzan, store, "private-again", place)
    expect(f"already trained to step {STEPS}: model sha256 {renzan.expected}" in run.log(), run.log())
    # It may be trained further, and the model is replaced at the end.
    wanted = renzan.train("private-longer", "", keys=LONGER).sha256()
    run = train(renzan, store, "private-further", place, keys=LONGER)
    # A checkpoint that was due while the previous one was still being written is as old as the
    # model.
    expect(re.search(rf"resuming from (model|step-0*{STEPS}) at step {STEPS}\b", run.log()), run.log())
    expect(f"model {model} sha256 {wanted}" in run.log(), run.log())
    expect(wanted in renzan("checkpoint", "verify", model, store=store), "its sha256")
    expect_whole(store, place)
    names = {key.rsplit("/", 1)[1] for key in store.client().keys("test", f"{place}/model/")}
    expect_equal(len({name.split(".")[0] for name in names} - {"manifest"}), 1,
                 f"what is left of the model before: {names}")
