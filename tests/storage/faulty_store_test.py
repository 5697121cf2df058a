#!/usr/bin/env python3
"""What goes wrong in front of a store (faulty_store.py) is what was planned, and nothing else."""

import concurrent.futures
import http.client
import os
import sys
import time

sys.dont_write_bytecode = True
from checks import expect, expect_equal, play, raised
from faults import (CUT_BEFORE, CUT_IN_ANSWER, CUT_IN_REQUEST, EXPIRED_TOKEN, IGNORE_CONDITIONS,
                    INTERNAL_ERROR, LOSE_ANSWER, SLOW_DOWN, TIME_TOO_SKEWED, TOO_MANY_REQUESTS,
                    TRUNCATE, answer, at_one_moment, delay, limit)
from faulty_store import FaultyStore
from s3_client import Client, authorization
from store import ADMIN, READER, RENEWED, Store

MIB = 1 << 20
CONTENT = os.urandom(3 * MIB)
BROKEN = (OSError, http.client.HTTPException)


def passes_on(store, faulty):
    """Requests without planned faults pass unchanged."""
    client = faulty.client()
    expect_equal(client.put("test", "folder/a key+%?#ü", CONTENT).status, 200, "put")
    expect(client.get("test", "folder/a key+%?#ü").body == CONTENT, "other content")
    answer = client.get("test", "folder/a key+%?#ü", Range="bytes=5-9")
    expect_equal((answer.status, answer.body), (206, CONTENT[5:10]), "a range")
    expect_equal(client.head("test", "folder/a key+%?#ü").headers["content-length"],
                 str(len(CONTENT)), "head")
    expect_equal(client.keys("test", "folder/"), ["folder/a key+%?#ü"], "keys")
    expect_equal(client.put("test", "folder/a key+%?#ü", b"", If_None_Match="*").status, 412,
                 "a condition")
    upload = client.create_upload("test", "big")
    etag = client.upload_part("test", "big", upload, 1, CONTENT).etag
    expect_equal(client.complete_upload("test", "big", upload, [etag]).status, 200, "an upload")
    expect_equal(client.delete("test", "folder/a key+%?#ü").status, 204, "delete")
    expect_equal(faulty.client(READER).put("test", "key", b"").code, "AccessDenied", "a reader")
    first, second, last = faulty.log[0], faulty.log[1], faulty.log[-1]
    expect_equal((first.number, first.method, first.status, first.bytes_in, first.bytes_out,
                  first.fault), (1, "PUT", 200, len(CONTENT), 0, ""), "the log of a put")
    expect_equal((second.method, second.bytes_in, second.bytes_out), ("GET", 0, len(CONTENT)),
                 "the log of a get")
    expect_equal((last.number, last.target, last.status), (len(faulty.log), "/test/key", 403),
                 "the log of what is refused")
    expect_equal(faulty.count("PUT", "uploadId="), 1, "parts")


def one_connection(store, faulty):
    """One connection has many requests, some of which wait for "100 Continue" or send chunks."""
    connection = http.client.HTTPConnection(faulty.endpoint.removeprefix("http://"))

    def request(method, path, body=b"", **headers):
        signed = {"host": connection.host + f":{connection.port}", "x-amz-content-sha256":
                  "UNSIGNED-PAYLOAD", "x-amz-date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())}
        signed["authorization"] = authorization(*ADMIN, method, path, [], signed)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {**signed, "content-length": len(body), **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.send(body)
        reply = connection.getresponse()
        return reply.status, reply.read()

    local = {connection.sock and connection.sock.getsockname()}
    for number in range(20):
        content = os.urandom(number * 1000)
        expect_equal(request("PUT", f"/test/one/{number}", content, Expect="100-continue")[0], 200,
                     "a put that waits")
        expect_equal(request("GET", f"/test/one/{number}"), (200, content), "get")
        faulty.inject(SLOW_DOWN, nth=1)
        expect_equal(request("PUT", f"/test/one/{number}", content)[0], 503, "a put in vain")
        local.add(connection.sock.getsockname())
    expect_equal(len(local - {None}), 1, "connections")
    faulty.inject(SLOW_DOWN, nth=1)
    expect_equal(request("PUT", "/test/one/last", b"", Expect="100-continue")[0], 503,
                 "refused before its body")
    connection.close()


def cuts(store, faulty):
    client, direct = faulty.client(), store.client()

    def is_cut(fault, key, body=CONTENT):
        faulty.inject(fault, "PUT", f"/{key}$", nth=1)
        raised(lambda: client.put("test", key, body), *BROKEN)
        expect_equal(faulty.log[-1].fault, fault.name, "the log")
        return direct.get("test", key)

    for fault in CUT_BEFORE, CUT_IN_REQUEST:
        expect_equal(is_cut(fault, "cut", b"").code, "NoSuchKey", fault.name)
        expect_equal(is_cut(fault, "cut").code, "NoSuchKey", fault.name)
    expect(faulty.log[-1].bytes_in >= len(CONTENT) // 2, "cut in the request, too early")
    for fault in LOSE_ANSWER, CUT_IN_ANSWER:
        expect(is_cut(fault, "done").body == CONTENT, f"{fault.name}: other content")
        expect_equal(faulty.log[-1].status, 200, fault.name)
        direct.delete("test", "done")
    direct.put("test", "got", CONTENT)
    faulty.inject(TRUNCATE, "GET", nth=1)
    error = raised(lambda: client.get("test", "got"), http.client.IncompleteRead)
    expect(error.partial == CONTENT[:len(CONTENT) // 2], "not the half of it")
    expect_equal(error.expected, len(CONTENT) - len(error.partial), "what is missing")
    faulty.inject(CUT_IN_ANSWER, "GET", nth=1)
    raised(lambda: client.get("test", "got"), *BROKEN)
    expect_equal(faulty.log[-1].bytes_out, len(CONTENT) // 2, "bytes of a cut answer")
    expect(client.get("test", "got").body == CONTENT, "other content after faults")


def every_request(store, faulty):
    """Every request in turn is cut."""
    client, direct = faulty.client(), store.client()

    def work():
        client.put("test", "turn/1", b"1")
        client.get("test", "turn/1")
        client.keys("test", "turn/")
        client.delete("test", "turn/1")

    work()
    count = faulty.count()
    expect_equal(count, 4, "requests")
    for fault in CUT_BEFORE, CUT_IN_REQUEST, LOSE_ANSWER, CUT_IN_ANSWER:
        for number in range(1, count + 1):
            faulty.reset()
            faulty.fail_request(number, fault)
            raised(work, *BROKEN)
            expect_equal([request.fault for request in faulty.log],
                         [""] * (number - 1) + [fault.name], f"{fault.name} at {number}")
    direct.delete("test", "turn/1")


def answers(store, faulty):
    client = faulty.client()
    for fault, status, code in (
            (INTERNAL_ERROR, 500, "InternalError"), (SLOW_DOWN, 503, "SlowDown"),
            (TOO_MANY_REQUESTS, 429, "TooManyRequests"), (EXPIRED_TOKEN, 403, "ExpiredToken"),
            (TIME_TOO_SKEWED, 403, "RequestTimeTooSkewed"), (answer(409, "Odd"), 409, "Odd")):
        rule = faulty.inject(fault, path="/answers", times=3)
        for reply in (client.put("test", "answers", CONTENT), client.get("test", "answers")):
            expect_equal((reply.status, reply.code), (status, code), fault.name)
        expect_equal(client.head("test", "answers").status, status, f"head: {fault.name}")
        expect_equal(client.get("test", "answers").code, "NoSuchKey", "what was never put")
        expect_equal((rule.hits, rule.matched), (3, 4), "hits")
        faulty.remove(rule)


def slowness(store, faulty):
    client = faulty.client()

    def took(function):
        begun = time.monotonic()
        expect_equal(function().status, 200, "what is slow")
        return time.monotonic() - begun

    faulty.inject(delay(0.5), "PUT")
    seconds = took(lambda: client.put("test", "slow", CONTENT))
    expect(seconds >= 0.5, f"put took {seconds} s")
    faulty.clear()
    faulty.inject(limit(4 * MIB))
    for function in (lambda: client.put("test", "slow", CONTENT),
                     lambda: client.get("test", "slow")):
        seconds = took(function)
        expect(seconds >= 0.75, f"{len(CONTENT)} bytes took {seconds} s")
    # Faults of several requests together, too.
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        begun = time.monotonic()
        list(threads.map(lambda _: client.get("test", "slow"), range(2)))
        seconds = time.monotonic() - begun
    expect(seconds >= 1.5, f"twice {len(CONTENT)} bytes took {seconds} s")


def ignored_conditions(store, faulty):
    """The conditions are among the headers that the client has signed."""
    client = faulty.client()
    client.put("test", "unconditional", b"1")
    faulty.inject(IGNORE_CONDITIONS, "PUT")
    expect_equal(client.put("test", "unconditional", b"2", If_None_Match="*").status, 200, "create")
    expect_equal(client.put("test", "unconditional", b"3", If_Match='"stale"').status, 200,
                 "replace")
    expect_equal(client.get("test", "unconditional").body, b"3", "what is left")
    wrong = Client(faulty.endpoint, "nobody", "wrong")
    faulty.clear()
    expect_equal(client.put("test", "unconditional", b"4", If_None_Match="*").status, 412, "later")
    expect_equal(wrong.put("test", "unconditional", b"").code, "InvalidAccessKeyId", "nobody")


def choices(store, faulty):
    """Which requests a rule applies to."""
    client = faulty.client()
    faulty.inject(SLOW_DOWN, "GET", r"/choices/a\?part", nth=2)
    faulty.inject(INTERNAL_ERROR, "GET", "/choices/b", every=3)
    statuses = {}
    for key, query in (("a", {"partNumber": "1"}), ("a", {}), ("b", {})):
        statuses[key, bool(query)] = [
            client.request("GET", f"/test/choices/{key}", query).status for _ in range(6)]
    expect_equal(statuses, {("a", True): [404, 503, 404, 404, 404, 404], ("a", False): [404] * 6,
                            ("b", False): [404, 404, 500] * 2}, "answers")
    faulty.clear()
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        rule = faulty.inject(SLOW_DOWN, every=5)
        found = list(threads.map(
            lambda _: client.get("test", "choices/c").status, range(100)))
    expect_equal((found.count(503), found.count(404), rule.hits), (20, 80, 20), "of many at once")
    expect_equal([request.number for request in faulty.log], list(range(1, len(faulty.log) + 1)),
                 "numbers")


def of_one_identity(store, faulty):
    rule = faulty.inject(EXPIRED_TOKEN, access_key=ADMIN[0])
    expect_equal([faulty.client(identity).put("test", "own", b"").status
                  for identity in (ADMIN, RENEWED, ADMIN)], [403, 200, 403], "answers")
    expect_equal(([each.access_key for each in faulty.log], rule.hits),
                 ([ADMIN[0], RENEWED[0], ADMIN[0]], 2), "who has signed them, and hits")


def at_once(store, faulty):
    """Of simultaneous writes with a condition, exactly one is carried out."""
    faulty.inject(at_one_moment(4), "PUT")
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        statuses = list(threads.map(lambda _: faulty.client().put(
            "test", "once", b"x", If_None_Match="*").status, range(4)))
    expect_equal(sorted(statuses), [200, 412, 412, 412], "answers")


def ends_of_stores(store, faulty):
    """If the store is gone, connections end; once it is back, it is found."""
    client = faulty.client()
    faulty.inject(delay(1), "GET", "/late", nth=1)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        late = threads.submit(lambda: raised(lambda: client.get("test", "late"), *BROKEN))
        faulty.wait_for_request("GET", "/late")
        store.kill()
        late.result()
    raised(lambda: client.get("test", "late"), *BROKEN)
    store.start()
    expect_equal(client.get("test", "late").code, "NoSuchKey", "when it is back")


def main():
    with Store() as store:
        for scenario in (passes_on, one_connection, cuts, every_request, answers, slowness,
                         ignored_conditions, choices, of_one_identity, at_once, ends_of_stores):
            with FaultyStore(store) as faulty:
                play(scenario, store, faulty)


if __name__ == "__main__":
    main()
