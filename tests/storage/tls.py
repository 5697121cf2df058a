"""TLS before a store that has none: certificates, and a relay that ends the encryption."""

import contextlib
import pathlib
import select
import socket
import ssl
import subprocess
import threading

from store import Store


class Certificates:
    """An authority, and a certificate for 127.0.0.1 signed by it, in a folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.authority = self._make("authority", "/CN=authority")
        self.server = self._make("server", "/CN=server", "-addext",
                                 "subjectAltName=IP:127.0.0.1", signed=True)
        self.other_host = self._make("other", "/CN=other", "-addext",
                                     "subjectAltName=DNS:other.example", signed=True)

    def _make(self, name, subject, *words, signed=False):
        """Returns the path of NAME.pem; its key is in NAME.key."""
        path = self.folder / f"{name}.pem"
        signer = ("-CA", self.folder / "authority.pem", "-CAkey", self.folder / "authority.key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", subject,
                        "-keyout", self.folder / f"{name}.key", "-out", path, *words,
                        *(signer if signed else ())], check=True, capture_output=True)
        return path


class TlsStore:
    """A store at https://127.0.0.1:PORT."""

    def __init__(self, store: Store, certificate):
        self._store = store
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        self._listener = socket.create_server(("127.0.0.1", 0))

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.close()

    def environment(self):
        port = self._listener.getsockname()[1]
        return {**self._store.environment(), "AWS_ENDPOINT_URL": f"https://127.0.0.1:{port}"}

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        """Serves one connection, request by request: a TLS socket is not for two threads at
        once."""
        with contextlib.suppress(OSError), client:
            with self._context.wrap_socket(client, server_side=True) as ours, \
                    socket.create_connection(self._store.address()) as theirs:
                ours.setblocking(False)
                theirs.setblocking(False)
                self._relay(ours, theirs)

    @staticmethod
    def _relay(ours, theirs):
        waiting = {ours: b"", theirs: b""}  # what is to be written to each
        other = {ours: theirs, theirs: ours}
        while True:
            readable = [s for s in waiting if len(waiting[other[s]]) < 1 << 20]
            if not (ours.pending() and ours in readable):
                select.select(readable, [s for s in waiting if waiting[s]], [], 60)
            for sock in readable:
                try:
                    piece = sock.recv(1 << 16)
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
                    continue
                if not piece:
                    return
                waiting[other[sock]] += piece
            for sock, text in waiting.items():
                if text:
                    with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError,
                                             BlockingIOError):
                        waiting[sock] = text[sock.send(text):]
