"""A small Kubernetes client for tests, with the standard library only.

Client reads a kubeconfig as `up` writes it: JSON, with a token. It keeps one connection per thread,
and threads may share it. ApiError is the server's refusal; OSError and HTTPException are the
connection's: the request may or may not have been carried out.
"""

import datetime
import http.client
import json
import ssl
import threading
import time
import urllib.parse

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


class ApiError(Exception):
    def __init__(self, status, body):
        body = body if isinstance(body, dict) else {"message": body}
        self.status = status
        self.reason, self.message = body.get("reason", ""), body.get("message", "")
        super().__init__(f"{status} {self.reason}: {self.message}")


class Client:
    def __init__(self, kubeconfig):
        with open(kubeconfig) as file:
            config = json.load(file)
        cluster = config["clusters"][0]["cluster"]
        self._address = urllib.parse.urlparse(cluster["server"]).netloc
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._headers = {"Authorization": "Bearer " + config["users"][0]["user"]["token"],
                         "Accept": "application/json"}
        self._thread = threading.local()

    def request(self, method, path, body=None, content_type="application/json"):
        """Returns the answer: an object, or text if it is not JSON, such as a log."""
        data = None if body is None else json.dumps(body)
        headers = self._headers | {"Content-Type": content_type}
        status, result = self._send(method, path, data, headers)
        # The server lost its connection to etcd, as happens occasionally on a busy machine. It may
        # have carried out the request, so only a request that may be done twice is repeated.
        is_repeatable = method in ("GET", "PUT") or content_type in (MERGE, STRATEGIC, APPLY)
        if is_repeatable and status == 500 and "rpc error" in str(result):
            status, result = self._send(method, path, data, headers)
        if status >= 400:
            raise ApiError(status, result)
        return result

    def _send(self, method, path, data, headers):
        """Returns the answer's status and body."""
        connection = getattr(self._thread, "connection", None)
        # A kept connection may have been closed meanwhile: a request that changes nothing is
        # repeated.
        for is_last in (connection is None or method != "GET", True):
            connection = connection or self._connect(30)
            try:
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                text = answer.read().decode()
                break
            except (OSError, http.client.HTTPException):
                connection.close()
                self._thread.connection = connection = None
                if is_last:
                    raise
        self._thread.connection = connection
        is_json = answer.getheader("Content-Type", "").startswith("application/json")
        return answer.status, json.loads(text) if is_json else text

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, body):
        return self.request("POST", path, body)

    def put(self, path, body):
        return self.request("PUT", path, body)

    def patch(self, path, body, content_type=MERGE):
        return self.request("PATCH", path, body, content_type)

    def delete(self, path, body=None):
        return self.request("DELETE", path, body)

    def changes(self, path, query=""):
        """Yields (type, object) forever: the list's objects as ADDED, then what the watch reports.
        After a lost connection or an expired version it lists again, which yields MODIFIED for
        known objects and DELETED for those that are gone."""
        known = {}
        while True:
            try:
                listing = self.get(f"{path}?{query}")
                found = {item["metadata"]["uid"]: item for item in listing["items"]}
                for uid in known.keys() - found.keys():
                    yield "DELETED", known[uid]
                for uid, item in found.items():
                    yield "MODIFIED" if uid in known else "ADDED", item
                known = found
                yield from self._watch(path, query, listing["metadata"]["resourceVersion"], known)
            except (OSError, http.client.HTTPException, ApiError, ValueError):
                time.sleep(0.5)  # ValueError: half a line, of a server that was killed

    def _watch(self, path, query, version, known):
        """Returns when the caller has to list again; keeps `known` up to date."""
        while True:
            # The server ends the watch after timeoutSeconds; longer silence is a dead connection.
            connection = self._connect(90)
            try:
                connection.request(
                    "GET", f"{path}?watch=1&allowWatchBookmarks=true&timeoutSeconds=60"
                           f"&resourceVersion={version}&{query}", headers=self._headers)
                answer = connection.getresponse()
                if answer.status >= 400:
                    return
                for line in answer:
                    event = json.loads(line)
                    kind, item = event["type"], event["object"]
                    if kind == "ERROR":
                        return
                    version = item["metadata"]["resourceVersion"]
                    if kind == "BOOKMARK":
                        continue
                    if kind == "DELETED":
                        known.pop(item["metadata"]["uid"], None)
                    else:
                        known[item["metadata"]["uid"]] = item
                    yield kind, item
            finally:
                connection.close()

    def _connect(self, timeout_s):
        return http.client.HTTPSConnection(self._address, context=self._tls, timeout=timeout_s)


def now(micro=False):
    """A time stamp of the API. Time has seconds; MicroTime, as in Leases, has microseconds."""
    pattern = "%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ"
    return datetime.datetime.now(datetime.timezone.utc).strftime(pattern)


def quantity(text):
    """The number that a resource quantity means: "500m" is 0.5, "2Ki" 2048."""
    for suffix, factor in (("m", 1e-3), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12),
                           ("Ki", 2**10), ("Mi", 2**20), ("Gi", 2**30), ("Ti", 2**40)):
        if text.endswith(suffix):
            return float(text[:-len(suffix)]) * factor
    return float(text)


PATIENCE_S = 180  # much longer than anything takes, for machines with much else to do


def wait_until(condition, what, seconds=PATIENCE_S):
    """Waits for the first true value of condition() and returns it. Time in which the server of a
    busy machine does not answer says nothing about the condition: it does not count."""
    end = time.monotonic() + seconds
    while True:
        begun = time.monotonic()
        try:
            value = condition()
            asked = time.monotonic()
        except TimeoutError:
            value = None
            asked = time.monotonic()
            end += asked - begun  # a server that never answers ends at the test's own limit
        if value:
            return value
        if asked > end:
            raise TimeoutError(f"not within {seconds} s: {what}")
        # To list a hundred pods keeps the server busy that is to create them.
        time.sleep(max(0.05, asked - begun))
