#!/usr/bin/env bash
# The checks of this machine, as a table and as JSON; a Kubernetes server is contacted only if
# configured.
source "$(dirname "$0")/lib.sh"
export HOME=$work
unset KUBECONFIG KUBERNETES_SERVICE_HOST GLOO_SOCKET_IFNAME

"$renzan" doctor --dir "$work" >table.txt
head -1 table.txt | grep -q '^what  *state  *here  *what to do' || fail "$(cat table.txt)"
"$renzan" doctor --json >doctor.json
python3 - <<'PY'
import json

checks = {check["name"]: check for check in json.load(open("doctor.json"))["checks"]}
for name in ("cores", "instruction set", "AMX", "GPU", "MPI", "Gloo interface", "memory", "disk",
             "job system", "control groups", "object stores", "Kubernetes"):
    check = checks[name]
    assert check["here"], name
    assert check["state"] in ("ok", "limited", "missing"), check
    # Whatever is missing has advice.
    assert check["state"] == "ok" or check["advice"], check
    assert name in open("table.txt").read(), name
assert "not configured" in checks["Kubernetes"]["here"], checks["Kubernetes"]
assert checks["job system"]["here"].endswith("/renzan-supervisor"), checks["job system"]
assert checks["object stores"]["here"].endswith("/librenzan_s3.so"), checks["object stores"]
PY
[ -z "$(ls -A | grep renzan-doctor || true)" ] || fail "the temporary file remains"

# Missing items come with advice.
GLOO_SOCKET_IFNAME=none0 PATH=/nowhere "$renzan" doctor >out.txt
grep -q 'MPI  *missing .*apt install openmpi-bin' out.txt || fail "no mpirun: $(cat out.txt)"
grep -q 'GLOO_SOCKET_IFNAME is none0' out.txt || fail "no interface: $(cat out.txt)"
grep -q 'disk  *missing' <<<"$("$renzan" doctor --dir "$work/none")" || fail "no directory"

# A server that answers, and one that does not.
cat >server.py <<'PY'
import http.server

class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        open("asked", "a").write(f"{self.path} {self.headers.get('Authorization')}\n")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"gitVersion": "v1.31.2"}')
    def log_message(self, *args):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Server)
print(server.server_port, flush=True)
server.serve_forever()
PY
mkfifo port
python3 server.py >port &
launcher=$!
read -r port <port
mkdir .kube
cat >.kube/config <<YAML
current-context: here
contexts: [{name: here, context: {cluster: c}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:$port"}}]
users: [{name: me, user: {token: secret}}]
YAML
no_proxy='*' "$renzan" doctor >out.txt
grep -q "Kubernetes  *ok  *http://127.0.0.1:$port answers (v1.31.2)" out.txt || fail "$(cat out.txt)"
[ "$(cat asked)" = "/version None" ] || fail "asked for $(cat asked)"
kill "$launcher"
wait "$launcher" || true
launcher=""
grep -q 'Kubernetes  *missing' <<<"$(no_proxy='*' "$renzan" doctor)" || fail "a server that has ended"
