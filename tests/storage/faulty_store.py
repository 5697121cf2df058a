"""In front of a Store: passes requests on, unchanged, and lets go wrong what tests have planned.

  with Store() as store, FaultyStore(store) as faulty:
      faulty.inject(CUT_IN_ANSWER, method="GET", path="/test/key", nth=1)      and more of Plan's
      faulty.client().get("test", "key")
      faulty.log[-1].fault

It has an address of its own, which clients sign as their Host; the store is content with that.
"""

import email.utils
import re
import socket
import threading
import time
import urllib.parse

from faults import (CUT_BEFORE, CUT_IN_ANSWER, CUT_IN_REQUEST, IGNORE_CONDITIONS, LOSE_ANSWER,
                    TRUNCATE, WAIT_S, Plan)
from http_stream import PIECE, Broken, Stream
from s3_client import Client, authorization
from store import ADMIN, IDENTITIES

# The access key, and which headers are signed.
SIGNED = re.compile(r"Credential=([^/]+)/.*SignedHeaders=([^,]+)")
CONDITIONS = {"if-match": None, "if-none-match": None}
SMALL_PIECES = 50  # a second, on a slow link
DRAIN_S = 2


def without_conditions(head):
    """Removes conditions from a head. If it was signed, it is signed again with the same
    identity."""
    signed = SIGNED.search(head.headers.get("authorization", ""))
    if not signed or not set(signed[2].split(";")) & set(CONDITIONS):
        return head.with_headers(CONDITIONS)
    names = [name for name in signed[2].split(";") if name not in CONDITIONS]
    path, _, query = head.first[1].partition("?")
    pairs = [tuple(map(urllib.parse.unquote, pair.partition("=")[::2]))
             for pair in query.split("&") if pair]
    key, secret = signed[1], dict(IDENTITIES)[signed[1]]
    return head.with_headers({**CONDITIONS, "Authorization": authorization(
        key, secret, head.first[0], path, pairs, {name: head.headers[name] for name in names})})


class Exchange:
    """One request on a connection, and its answer."""

    def __init__(self, client, head, request, faults, connect):
        self._client, self._head, self._request = client, head, request
        self._connect = connect
        self._links = [fault.link for fault in faults if fault.link]
        self._barriers = [fault.barrier for fault in faults if fault.barrier]
        self._delay_s = sum(fault.seconds for fault in faults)
        self._keeps_conditions = IGNORE_CONDITIONS not in faults
        self._fault = next((fault for fault in faults if not fault.adds_up), None)
        self._most = min([PIECE, *(int(link.bytes_per_second / SMALL_PIECES) + 1
                                   for link in self._links)])
        # For a "100 Continue", which is sent with its body.
        self._waits = "expect" in head.headers and self._request_size() > 0
        self._store = None

    def carry_out(self):
        """Returns whether another request may follow."""
        time.sleep(self._delay_s)
        for barrier in self._barriers:
            try:
                barrier.wait(WAIT_S)
            except threading.BrokenBarrierError as error:
                raise Broken("nobody else has come") from error
        if self._fault == CUT_BEFORE:
            self._client.reset()
            return False
        if self._fault and self._fault.status:
            return self._answer()
        self._store = Stream(self._connect())
        try:
            return self._pass_on()
        finally:
            self._store.close()

    def _answer(self):
        """The fault answers in the store's place."""
        fault, request = self._fault, self._request
        for piece in () if self._waits else self._client.body(self._head, self._most):
            self._carry_in(piece)
        region = f"<Region>{fault.region}</Region>" if fault.region else ""
        body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{fault.code}</Code>'
                f"<Message>injected by a test</Message>{region}</Error>").encode()
        end = "Connection: close\r\n" if self._waits else ""
        if fault.region:
            end += f"x-amz-bucket-region: {fault.region}\r\n"
        if fault.etag:
            end += f"ETag: {fault.etag}\r\n"
        request.status = fault.status
        date = email.utils.formatdate(time.time() + fault.clock, usegmt=True)
        self._client.send((f"HTTP/1.1 {fault.status} {fault.code}\r\n"
                           f"Date: {date}\r\n"
                           f"Content-Type: application/xml\r\n{end}"
                           f"Content-Length: {len(body)}\r\n\r\n").encode())
        if self._head.first[0] != "HEAD":
            request.bytes_out += len(body)
            self._client.send(body)
        return not self._waits and not self._head.is_last

    def _pass_on(self):
        head = self._head if self._keeps_conditions else without_conditions(self._head)
        if self._fault == CUT_IN_REQUEST and not self._request_size():
            self._store.send(head.raw[:len(head.raw) // 2])
            self._client.reset()
            return False
        self._store.send(head.raw)
        answer, is_read = None, True
        if self._waits:
            answer = self._next_answer()
            is_read = answer.status == 100
            if is_read:
                self._client.send(answer.raw)
        if is_read:
            if self._fault == CUT_IN_REQUEST:
                self._send_body(self._request_size() // 2)
                self._client.reset()
                return False
            is_read = self._send_body()
            answer = self._next_answer()
            while answer.status == 100:
                self._client.send(answer.raw)
                answer = self._next_answer()
        self._request.status = answer.status
        if self._fault == LOSE_ANSWER:
            self._client.reset()
            return False
        return self._relay(answer) and is_read

    def _request_size(self):
        return int(self._head.headers.get("content-length", 0))

    def _send_body(self, most=None):
        """Sends the body, or `most` bytes of it. Returns whether all of it was sent: not if the store
        answered earlier."""
        try:
            for piece in self._client.body(self._head, self._most):
                self._carry_in(piece)
                if most is not None and self._request.bytes_in >= most:
                    self._store.send(piece[:len(piece) - (self._request.bytes_in - most)])
                    return False
                if self._store.is_readable():
                    return False
                self._store.send(piece)
        except Broken:
            if not self._store.is_readable():
                raise
            return False
        return True

    def _next_answer(self):
        answer = self._store.head()
        if answer is None:
            raise Broken("the store has ended the connection")
        return answer

    def _relay(self, answer):
        has_body = self._head.first[0] != "HEAD" and answer.status not in (204, 304)
        size = int(answer.headers.get("content-length", 2)) if has_body else 0
        is_cut = self._fault in (CUT_IN_ANSWER, TRUNCATE)
        if self._fault == CUT_IN_ANSWER and not size:
            self._client.send(answer.raw[:len(answer.raw) // 2])
            return self._cut()
        self._client.send(answer.raw)
        for piece in self._store.body(answer, self._most) if has_body else ():
            if is_cut:
                piece = piece[:size // 2 - self._request.bytes_out]
            self._carry_out(piece)
            if is_cut and self._request.bytes_out >= size // 2:
                return self._cut()
        return not (is_cut or answer.is_last or self._head.is_last)

    def _cut(self):
        if self._fault == TRUNCATE:
            self._client.end()
        else:
            self._client.reset()
        return False

    def _carry_in(self, piece):
        self._request.bytes_in += len(piece)
        for link in self._links:
            link.carry(len(piece))

    def _carry_out(self, piece):
        for link in self._links:
            link.carry(len(piece))
        self._request.bytes_out += len(piece)
        self._client.send(piece)


class FaultyStore(Plan):
    def __init__(self, store):
        super().__init__()
        self._store = store
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open = set()  # connections of clients
        self._lock = threading.Lock()  # protects them

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()

    def environment(self, identity=ADMIN):
        return self._store.environment(identity) | {"AWS_ENDPOINT_URL": self.endpoint}

    def client(self, identity=ADMIN, **others):
        return Client(self.endpoint, *identity, **others)

    def cut_all(self):
        """Cuts all connections that clients have."""
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the client was first

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.add(connection)
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection):
        client = Stream(connection)
        try:
            while (head := client.head()) and self._exchange(client, head):
                pass
            client.end()
            client.drain(DRAIN_S)
        except Broken:
            pass  # the client sees its connection end, as the proxy has seen the store's
        finally:
            with self._lock:
                self._open.discard(connection)
                connection.close()

    def _exchange(self, client, head):
        signed = SIGNED.search(head.headers.get("authorization", ""))
        request, faults = self.take(*head.first[:2], access_key=signed[1] if signed else "")
        return Exchange(client, head, request, faults, self._connect).carry_out()

    def _connect(self):
        host, port = urllib.parse.urlparse(self._store.endpoint).netloc.split(":")
        try:
            return socket.create_connection((host, int(port)))
        except OSError as error:
            raise Broken(f"no store: {error}") from error
