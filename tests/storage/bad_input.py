"""What users and their administrators get wrong: one line says what and what to do, and the exit
code tells which kind of mistake it was."""

import contextlib
import socket

from checks import expect
from faults import ANOTHER_REGION, IGNORE_CONDITIONS, TIME_TOO_SKEWED
from faulty_store import FaultyStore
from store import ADMIN, READER
from stored_checkpoints import etags, url
from training import WRONG_SECRET

NO_INPUT, IO, NO_PERMISSION, CONFIG = 66, 74, 77, 78


@contextlib.contextmanager
def nobody():
    """Yields an address at which nothing listens, though the port is taken."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def bad_input(renzan, store):
    number = 0

    def refused(code, *fragments, place=url("bad"), where=store, words=None, **variables):
        """Runs the program, which must fail with `code` and say `fragments`. `words`: the command,
        instead of training."""
        nonlocal number
        number += 1
        run = f"bad-{number}"
        said = renzan(*(words or renzan.train_words(run, place)), code=code, store=where,
                      **variables)
        expect(said.startswith("error: "), f"no error: {said}")
        for fragment in fragments:
            expect(fragment in said, f"not '{fragment}', but: {said}")
        expect(not (renzan.folder / run / "model").exists(), f"a model of {run}")

    identities(store, refused)
    places(store, refused)
    with FaultyStore(store) as faulty:
        stores(store, faulty, refused)
    expect(not etags(store, "bad"), f"written in vain: {etags(store, 'bad')}")


def identities(store, refused):
    for (key, secret), *fragments in (
            ((ADMIN[0], WRONG_SECRET), "the secret key of ", "AWS_ACCESS_KEY_ID"),
            (("nobody", WRONG_SECRET), "the store does not know the credentials of "),
            (READER, "the credentials of ", " do not allow it", "PUT s3://test/bad")):
        refused(NO_PERMISSION, *fragments, where=store.environment((key, secret)))
    wrong = store.environment((ADMIN[0], WRONG_SECRET))
    for words in (["list", url("bad")], ["verify", url("bad/step-1")],
                  ["diff", url("bad/a"), "reference"], ["export", "reference", "--output", url("bad/file.safetensors")]):
        refused(NO_PERMISSION, "AWS_ACCESS_KEY_ID", where=wrong, words=["checkpoint", *words])
    refused(NO_PERMISSION, "do not allow it", where=store.environment(READER),
            words=["checkpoint", "export", "reference", "--output", url("bad/file.safetensors")])
    nothing = {"AWS_ENDPOINT_URL": store.endpoint}
    refused(CONFIG, "no credentials", "AWS_ACCESS_KEY_ID", where=nothing)
    refused(CONFIG, "AWS_SECRET_ACCESS_KEY", where=nothing | {"AWS_ACCESS_KEY_ID": ADMIN[0]})
    refused(CONFIG, "AWS_PROFILE", "'other'", where=nothing, AWS_PROFILE="other")


def places(store, refused):
    refused(NO_INPUT, "create the bucket 'missing'", place="s3://missing/bad")
    refused(NO_INPUT, "create the bucket 'missing'", place="s3://missing/bad",
            words=["checkpoint", "list", "s3://missing/bad"])
    refused(NO_INPUT, "does not exist", words=["checkpoint", "list", url("nothing-here")])
    for place, fragment in (
            ("s3://ab", "'ab' cannot be the name of a bucket"),
            ("s3://Bad_bucket name/x", "'Bad_bucket name' cannot be the name of a bucket"),
            ("s3://", "cannot be the name of a bucket"),
            ("s3:///x", "cannot be the name of a bucket"),
            (url("bad/../worse"), "paths in a store have no '.' and '..'"),
            (url("bad/./here"), "paths in a store have no '.' and '..'"),
            (url("b" * 1100), "stores allow 1024"), (url("bad\x07"), "control characters")):
        refused(CONFIG, fragment, place=place)
        refused(CONFIG, fragment, place="", RENZAN_CHECKPOINT_DIR=place)
        refused(CONFIG, fragment, words=["checkpoint", "list", place])
    refused(CONFIG, "a run directory must be on this machine",
            words=["train", "config.json", "--run-dir", url("bad"), "--threads", "1"])


def stores(store, faulty, refused):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        for address in ("127.0.0.1:8333", "ftp://127.0.0.1", "http://", "http://a b/",
                        "http://127.0.0.1:99999", "https://host/path"):
            refused(CONFIG, f"{name}: '{address}' ", **{name: address})
    refused(CONFIG, "AWS_ENDPOINT_URL: ", "'@'", AWS_ENDPOINT_URL=f"http://me:{WRONG_SECRET}@host")
    refused(CONFIG, "AWS_REGION", AWS_REGION="a/b")
    refused(CONFIG, "RENZAN_S3_ADDRESSING", "'neither'", RENZAN_S3_ADDRESSING="neither")
    refused(CONFIG, "RENZAN_S3_RETRY_FOR", "'soon'", RENZAN_S3_RETRY_FOR="soon")
    with nobody() as address:
        for words in (None, ["checkpoint", "list", url("bad")]):
            refused(IO, f"the store at {address} does not work", "is it running and reachable",
                    words=words, AWS_ENDPOINT_URL=address, RENZAN_S3_RETRY_FOR="500ms")
    skewed = faulty.inject(TIME_TOO_SKEWED)
    refused(CONFIG, "this machine's clock says ", ", the store's ", where=faulty)
    faulty.remove(skewed)
    elsewhere = faulty.inject(ANOTHER_REGION)
    for words in (None, ["checkpoint", "list", url("bad")]):
        refused(CONFIG, "eu-west-1", "AWS_REGION", where=faulty, words=words)
    faulty.remove(elsewhere)
    faulty.inject(IGNORE_CONDITIONS)
    refused(CONFIG, "ignores conditional writes", where=faulty)
