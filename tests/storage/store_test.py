#!/usr/bin/env python3
"""The store of tests (store.py) does what S3 does, as far as tests of clients rely on it."""

import base64
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from checks import expect, expect_equal, play
from s3_client import Client, canonical_query
from store import ADMIN, PORTS, READER, Store, remove_sockets
from training import descendants, is_alive

MIB = 1 << 20
store_py = pathlib.Path(__file__).with_name("store.py")


def objects(store):
    client, content = store.client(), os.urandom(3 * MIB)
    expect_equal(client.put("test", "folder/a key+%?#ü", content).status, 200, "put")
    expect_equal(client.get("test", "folder/a key+%?#ü").body, content, "get")
    expect_equal(client.keys("test", "folder/"), ["folder/a key+%?#ü"], "keys")
    expect_equal(int(client.head("test", "folder/a key+%?#ü").headers["content-length"]), 3 * MIB,
                 "the length by head")
    expect_equal(client.delete("test", "folder/a key+%?#ü").status, 204, "delete")
    expect_equal(client.delete("test", "folder/a key+%?#ü").status, 204, "delete what is gone")
    expect_equal(client.get("test", "folder/a key+%?#ü").code, "NoSuchKey", "get what is gone")
    expect_equal(client.get("no-bucket", "key").code, "NoSuchBucket", "get from no bucket")
    expect_equal(client.put("no-bucket", "key", b"").code, "NoSuchBucket", "put into no bucket")


def ranges(store):
    client, content = store.client(), os.urandom(10000)
    client.put("test", "ranges", content)
    for asked, first, last in (("0-0", 0, 0), ("10-19", 10, 19), ("9990-", 9990, 9999),
                               ("-5", 9995, 9999), ("9990-20000", 9990, 9999)):
        answer = client.get("test", "ranges", Range=f"bytes={asked}")
        expect_equal((answer.status, answer.body, answer.headers["content-range"]),
                     (206, content[first:last + 1], f"bytes {first}-{last}/10000"), asked)
    answer = client.get("test", "ranges", Range="bytes=10000-")
    expect_equal((answer.status, answer.code), (416, "InvalidRange"), "beyond the end")


def lists(store):
    client = store.client()
    keys = [f"lists/{folder}/{number}" for folder in "abc" for number in range(3)]
    for key in [*keys, "lists/z"]:
        client.put("test", key, b"")
    expect_equal(client.keys("test", "lists/"), [*keys, "lists/z"], "all keys")
    page = client.list("test", prefix="lists/", max_keys="4")
    expect_equal((page.texts("Contents/Key"), page.texts("IsTruncated")), (keys[:4], ["true"]),
                 "a page")
    page = client.list("test", prefix="lists/", max_keys="4",
                       continuation_token=page.texts("NextContinuationToken")[0])
    expect_equal(page.texts("Contents/Key"), keys[4:8], "the next page")
    page = client.list("test", prefix="lists/", delimiter="/")
    expect_equal((page.texts("Contents/Key"), page.texts("CommonPrefixes/Prefix")),
                 (["lists/z"], ["lists/a/", "lists/b/", "lists/c/"]), "by folders")


def conditions(store):
    client = store.client()
    first = client.put("test", "conditions", b"1", If_None_Match="*")
    expect_equal(first.status, 200, "create")
    answer = client.put("test", "conditions", b"2", If_None_Match="*")
    expect_equal((answer.status, answer.code), (412, "PreconditionFailed"), "create again")
    expect_equal(client.put("test", "conditions", b"3", If_Match=first.etag).status, 200, "replace")
    expect_equal(client.put("test", "conditions", b"4", If_Match=first.etag).status, 412,
                 "replace what has changed")
    expect_equal(client.get("test", "conditions").body, b"3", "what is left")


def races(store):
    """Of several creators, one succeeds; the others may wait for its lock, a second at a time."""
    client, creators = store.client(), range(4)
    with concurrent.futures.ThreadPoolExecutor(len(creators)) as threads:
        for race in range(4):
            statuses = list(threads.map(
                lambda creator: client.put("test", f"races/{race}", str(creator).encode(),
                                           If_None_Match="*").status, creators))
            expect_equal(sorted(statuses), [200, 412, 412, 412], f"race {race}")
            expect_equal(client.get("test", f"races/{race}").body,
                         str(statuses.index(200)).encode(), f"the winner of race {race}")


def uploads(store):
    client, parts = store.client(), [os.urandom(5 * MIB), b"the end"]
    upload = client.create_upload("test", "uploads/big")
    etags = [client.upload_part("test", "uploads/big", upload, number, part).etag
             for number, part in enumerate(parts, 1)]
    expect_equal(client.keys("test", "uploads/"), [], "keys before its end")
    expect_equal(client.uploads("test", "uploads/"), [("uploads/big", upload)], "uploads")
    expect_equal(client.uploads("test", "others/"), [], "uploads of others")
    answer = client.complete_upload("test", "uploads/big", upload, etags, If_None_Match="*")
    expect_equal(answer.status, 200, "complete")
    expect(client.get("test", "uploads/big").body == b"".join(parts), "the parts differ")
    upload = client.create_upload("test", "uploads/big")
    etag = client.upload_part("test", "uploads/big", upload, 1, b"other").etag
    answer = client.complete_upload("test", "uploads/big", upload, [etag], If_None_Match="*")
    expect_equal((answer.status, answer.code), (412, "PreconditionFailed"), "complete again")
    expect_equal(client.abort_upload("test", "uploads/big", upload).status, 204, "abort")
    expect_equal(client.uploads("test"), [], "uploads left")
    expect_equal(client.upload_part("test", "uploads/big", upload, 1, b"").code, "NoSuchUpload",
                 "a part of what was aborted")


def damage(store):
    """Bytes that do not match their checksum are refused."""
    client = store.client()
    other = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    for header, value in (("Content_MD5", other), ("x_amz_checksum_crc32c", "AAAAAA==")):
        answer = client.put("test", "damage", b"content", **{header: value})
        expect_equal((answer.status, answer.code), (400, "BadDigest"), header)
    expect_equal(client.get("test", "damage").code, "NoSuchKey", "what was refused")


def refusals(store):
    reader = store.client(READER)
    store.client().put("test", "read", b"content")
    expect_equal(reader.get("test", "read").body, b"content", "a reader's get")
    expect_equal(reader.keys("test", "read"), ["read"], "a reader's list")
    for what in (reader.put("test", "read", b""), reader.delete("test", "read"),
                 reader.create_bucket("readers")):
        expect_equal((what.status, what.code), (403, "AccessDenied"), "a reader's write")
    for client, code in ((Client(store.endpoint, ADMIN[0], "wrong"), "SignatureDoesNotMatch"),
                         (Client(store.endpoint, "nobody", "wrong"), "InvalidAccessKeyId"),
                         (store.client(skew_s=-1200), "RequestTimeTooSkewed")):
        answer = client.get("test", "read")
        expect_equal((answer.status, answer.code), (403, code), "who may not")


def restarts(store):
    client, content, endpoint = store.client(), os.urandom(9 * MIB), store.endpoint
    client.put("test", "kept", content)
    upload = client.create_upload("test", "begun")
    etag = client.upload_part("test", "begun", upload, 1, b"part").etag
    store.restart()
    expect_equal(store.endpoint, endpoint, "the endpoint")
    expect(client.get("test", "kept").body == content, "kept differs")
    expect_equal(client.complete_upload("test", "begun", upload, [etag]).status, 200, "complete")
    store.stop()
    store.start()
    expect_equal(client.get("test", "begun").body, b"part", "begun")
    expect_equal(client.put("test", "kept", b"", If_None_Match="*").status, 412, "create again")


def listens(store):
    """It listens on the loopback address only."""
    sockets = set()
    for link in pathlib.Path(f"/proc/{store.pid}/fd").iterdir():
        try:
            sockets.update(re.findall(r"socket:\[(\d+)\]", os.readlink(link)))
        except FileNotFoundError:
            pass  # closed meanwhile, or belongs to a request that has ended
    for table, own in (("tcp", "0100007F:"), ("tcp6", None), ("udp", None), ("udp6", None)):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in sockets:
                expect(own and fields[1].startswith(own), f"it listens at {fields[1]} ({table})")


def ended(pid):
    end = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_alive(pid)


def commands():
    run = subprocess.run([store_py, "run", "--", "bash", "-c",
                          'echo "$AWS_ENDPOINT_URL $AWS_REGION"; exit 5'],
                         capture_output=True, text=True)
    expect(run.returncode == 5 and re.fullmatch(r"http://127.0.0.1:\d+ us-east-1\n", run.stdout),
           f"run: {run}")
    with tempfile.TemporaryDirectory() as folder:
        serve = subprocess.Popen([store_py, "serve", folder], stdout=subprocess.PIPE, text=True)
        said = "".join(iter(serve.stdout.readline, "# the bucket is test; end with ctrl-C\n"))
        servers = descendants(serve.pid)
        client = Client(re.search(r"http:\S+", said)[0], *ADMIN)
        expect_equal(client.put("test", "key", b"").status, 200, "put into what is served")
        expect_equal(len(servers), 1, "servers")
        serve.kill()  # then nobody is left to end the server
        serve.wait()
        expect(ended(servers[0]), "the server has outlived who has started it")
        remove_sockets(int(client.endpoint.rpartition(":")[2]) - PORTS.index("s3.port"))


def signature():
    """Queries that clients tend to sign wrongly."""
    expect_equal(canonical_query([("prefix", "a/b c"), ("list-type", "2"), ("uploads", "")]),
                 "list-type=2&prefix=a%2Fb%20c&uploads=", "a query")


def main():
    signature()
    with Store() as store:
        for scenario in (objects, ranges, lists, conditions, races, uploads, damage, refusals,
                         listens, restarts):
            play(scenario, store)
        folder, pid = store.folder, store.pid
    expect(ended(pid) and not folder.exists(), "the store has left something")
    play(commands)


if __name__ == "__main__":
    main()
