"""Between a replica and the API server: sees what the replica asks, holds a request back while
something else happens, or loses the answer to one that has been carried out."""

import http.client
import http.server
import json
import pathlib
import re
import select
import socket
import ssl
import threading
import urllib.parse

PASSED_ON = ("Authorization", "Accept", "Content-Type")


GONE = b'{"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}'


class Hold:
    """A request that has been sent, but does not reach the server until it is released."""

    def __init__(self):
        self.has_come, self.may_go, self.answered = (threading.Event() for _ in range(3))
        self.status = 0  # of the answer, once there is one


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_all(self):
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = f"{self.command} {self.path.partition('?')[0]}"
        if "watch=1" in self.path and proxy.takes_expiry(request):
            self.answer(410, GONE)
            return
        hold, is_lost = proxy.take(request)
        if hold:
            hold.has_come.set()
            hold.may_go.wait()
        upstream = http.client.HTTPSConnection(proxy.upstream, context=proxy.tls)
        try:
            upstream.request(self.command, self.path, body, {
                name: self.headers[name] for name in PASSED_ON if name in self.headers})
            answer = upstream.getresponse()
            proxy.passed.append((request, answer.status))
            if "watch=1" in self.path:
                self.stream(upstream, answer, request)
                return
            content = answer.read()
            if hold:
                hold.status = answer.status
                hold.answered.set()
            if is_lost:
                self.close_connection = True
                return
            self.answer(answer.status, content)
        except (OSError, http.client.HTTPException):
            self.close_connection = True  # as the server, or the replica, has done
        finally:
            upstream.close()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_all

    def answer(self, status, content):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def end_with_client(self, upstream):
        """Ends with the client: otherwise a watch might not notice for minutes that its client is
        gone."""
        try:
            select.select([self.connection], [], [])  # it sends nothing more until its end
            upstream.shutdown(socket.SHUT_RDWR)
        except (OSError, ValueError):
            pass  # the server was first

    def stream(self, upstream, answer, request):
        self.close_connection = True
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        threading.Thread(target=self.end_with_client, args=[upstream.sock], daemon=True).start()
        while piece := answer.read1(1 << 16):
            if self.server.proxy.is_stalled(request):
                return
            self.wfile.write(piece)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a replica that was killed in the middle of a request


class Proxy:
    """A proxy for one replica, whose kubeconfig is `config`. `certificate`: a file that also holds
    the key; by default that of the testbed's API server."""

    def __init__(self, world, name, certificate=None):
        config = json.loads(pathlib.Path(world.controller_config).read_text())
        cluster = config["clusters"][0]["cluster"]
        self.upstream = urllib.parse.urlparse(cluster["server"]).netloc
        self.tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.passed = []  # (request, status of the answer)
        self._lock = threading.Lock()
        self._holds, self._losses = {}, set()  # by pattern
        self._stalled, self._expired = None, None  # requests that watch
        self._flows = threading.Event()
        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.proxy = self
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if certificate:
            own.load_cert_chain(certificate)
        else:
            own.load_cert_chain(f"{world.run}/certs/server.crt", f"{world.run}/certs/server.key")
        # The connection's thread does the handshake, so that no replica waits for another.
        self._server.socket = own.wrap_socket(self._server.socket, server_side=True,
                                              do_handshake_on_connect=False)
        cluster["server"] = f"https://127.0.0.1:{self._server.server_address[1]}"
        self.config = f"{world.run}/kubeconfig-{name}"
        pathlib.Path(self.config).write_text(json.dumps(config))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def hold(self, pattern):
        """Holds the next such request ("POST /api/v1/..."). Returns the Hold."""
        with self._lock:
            return self._holds.setdefault(pattern, Hold())

    def lose_answer(self, pattern):
        """Loses the answer to the next such request."""
        with self._lock:
            self._losses.add(pattern)

    def stall(self, request):
        """Watches of `request` report nothing more until expire()."""
        self._flows.clear()
        self._stalled = request

    def expire(self):
        """Tells whoever watches the stalled request to list again."""
        self._expired, self._stalled = self._stalled, None
        self._flows.set()

    def is_stalled(self, request):
        """Whether the request is stalled. If so, waits until its stream is to be ended."""
        if request != self._stalled:
            return False
        self._flows.wait()
        return True

    def takes_expiry(self, request):
        if request == self._stalled:
            self._flows.wait()
        if request != self._expired:
            return False
        self._expired = None
        return True

    def calm(self):
        """Ends all faults."""
        with self._lock:
            for hold in self._holds.values():
                hold.may_go.set()
            self._holds, self._losses = {}, set()
        self.expire()
        self._expired = None

    def take(self, request):
        """What to do with the request: its Hold or None, and whether its answer is lost."""
        with self._lock:
            hold = next((each for each in self._holds if re.fullmatch(each, request)), None)
            loss = next((each for each in self._losses if re.fullmatch(each, request)), None)
            self._losses.discard(loss)
            return hold and self._holds.pop(hold), loss is not None

    def writes(self):
        """All writes except those to the Lease."""
        return [each for each in self.passed
                if not each[0].startswith("GET ") and "/leases" not in each[0]]

    def status_of(self, pattern, after=0):
        """The status of the answer to the first such request, after the first `after` requests."""
        return next(status for request, status in self.passed[after:]
                    if re.fullmatch(pattern, request))

    def count(self, pattern):
        return sum(bool(re.fullmatch(pattern, request)) for request, _ in self.passed)


def start_behind_proxies(world, count, *options, **others):
    """Starts replicas, each behind a `proxy` of its own."""
    for number in range(count):
        proxy = Proxy(world, f"proxy-{number}")
        world.start_replica(*options, kubeconfig=proxy.config, **others).proxy = proxy
