"""What is in a store below a place that runs have written to."""

import json

from checks import expect, expect_equal
from store import BUCKET

MANIFEST = "/manifest.json"
# In place of a checkpoint that a run must not publish, because its lock was taken over.
ABANDONED = "abandoned for"
# Paths of the objects that runs write, as regular expressions.
OBJECTS, MANIFESTS = r"/step-\d+/.*safetensors", r"/step-\d+/manifest.json"


def url(place):
    return f"s3://{BUCKET}/{place}"


def listed(store, place, what):
    """One column of the list of all objects below s3://test/place, by key."""
    page = store.client().list(BUCKET, prefix=f"{place}/")
    expect_equal((page.status, page.texts("IsTruncated")), (200, ["false"]), f"list {place}")
    return dict(zip(page.texts("Contents/Key"), page.texts(f"Contents/{what}")))


def sizes(store, place):
    return {key: int(size) for key, size in listed(store, place, "Size").items()}


def etags(store, place):
    return listed(store, place, "ETag")


def manifests(store, place):
    """The manifests by names of checkpoints."""
    found = {key.split("/")[-2]: json.loads(store.client().get(BUCKET, key).body)
             for key in sizes(store, place) if key.endswith(MANIFEST)}
    return {name: manifest for name, manifest in found.items() if ABANDONED not in manifest}


def uploads(store, place):
    """The keys of unfinished uploads."""
    return [key for key, _ in store.client().uploads(BUCKET, f"{place}/")]


def strays(store, place):
    """The keys of objects that belong neither to a checkpoint nor to the lock."""
    there = sizes(store, place)
    wanted = {f"{place}/.lock"} | {key for key in there if key.endswith(MANIFEST)}
    for name, manifest in manifests(store, place).items():
        wanted |= {f"{place}/{name}/{file['name']}" for file in manifest["files"]}
    return sorted(set(there) - wanted)


def expect_whole(store, place, keep=3):
    """There must be checkpoints, at most `keep` and their bases, each with all of its files, and
    nothing else. Returns their manifests by name."""
    found, there = manifests(store, place), sizes(store, place)
    expect(found, f"no checkpoint in {place}: {there}")
    bases = {manifest["base"]["name"] for manifest in found.values() if manifest["base"]}
    expect(bases <= set(found), f"{place}: of {bases} only {set(found)} are there")
    expect(len(set(found) - bases - {"model"}) <= keep, f"{place}: more than {keep} in {sorted(found)}")
    for name, manifest in found.items():
        for file in manifest["files"]:
            expect_equal(there.get(f"{place}/{name}/{file['name']}"), file["bytes"],
                         f"bytes of {name}/{file['name']}")
    expect_equal(strays(store, place), [], f"what is left in {place}")
    expect_equal(uploads(store, place), [], f"unfinished uploads in {place}")
    return found
