# Following a job or its output shows every line once, and the former returns the job's exit code,
# although the daemon is killed and restarted and the job is preempted meanwhile.
source "$(dirname "$0")/lib.sh" "$@"
export RENZAN_STATE_DIR=$work/state
unset RENZAN_SOCKET
trap 'kill $follower $logs $tail $earlier 2>/dev/null || true; $renzan cluster down --stop-jobs 2>/dev/null || true; rm -rf "$work"' EXIT
follower="" logs="" tail="" earlier=""
up() { $renzan cluster up --nodes 2 >/dev/null; }
value_of() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }
up
cat >count.yaml <<'YAML'
name: count
checkpoint: {on_stop: true}
command:
  - sh
  - -c
  - |
    trap 'exit 75' TERM
    i=0
    [ ! -e "$RENZAN_RUN_DIR/at" ] || i=$(cat "$RENZAN_RUN_DIR/at")
    while [ $i -lt 60 ]; do
      i=$((i + 1))
      echo "line $i"
      echo $i >"$RENZAN_RUN_DIR/at"
      sleep 0.05
    done
    exit 4
YAML
$renzan submit count.yaml --follow >log.txt 2>follow.err &
follower=$!
wait_for grep -q 'line 5' log.txt
$renzan job logs -f 1 >logs.txt 2>logs.err &
logs=$!
wait_for grep -q 'line 5' logs.txt
kill -KILL "$($renzan cluster status --json | value_of pid)"
wait_for grep -q 'the output of job 1 breaks off .*: trying for a minute to go on' logs.err
wait_for up
wait_for grep -q 'line 20' log.txt
$renzan job preempt 1 >/dev/null
wait_for grep -q 'line 35' log.txt
$renzan job logs -f 1 --tail 1 >tail.txt 2>tail.err &
tail=$!
wait_for grep -q line tail.txt
$renzan cluster down 2>down.txt
grep -q "running workers continue, and .*: \`renzan cluster down --stop-jobs\` after that ends them$" down.txt ||
  fail "$(cat down.txt)"
up
for reader in $logs $tail; do
  wait "$reader" || fail "job logs -f: exit $?: $(cat logs.err tail.err)"
done
diff <(seq 60 | sed 's/^/line /') logs.txt || fail "job logs -f: lines were lost or shown twice"
[ "$(grep -c 'breaks off' logs.err)" -ge 2 ] || fail "$(cat logs.err)"
first=$(head -1 tail.txt)
diff <(seq "${first#line }" 60 | sed 's/^/line /') tail.txt || fail "job logs -f --tail 1"
status=0
wait $follower || status=$?
follower=""
[ $status -eq 4 ] || { cat follow.err >&2; fail "exit $status instead of 4"; }
diff <(seq 60 | sed 's/^/line /') log.txt || fail "lines were lost or shown twice"
[ "$(grep -c 'breaks off' follow.err)" -ge 2 ] || fail "$(cat follow.err)"
# Nothing is left that could continue.
$renzan cluster down 2>down.txt
! grep -q "workers continue" down.txt || fail "$(cat down.txt)"

# A daemon of an earlier version sends the text alone. A follower says so at once, although the job
# goes on.
cat >earlier.py <<'PYTHON'
import http.server, socketserver, sys

JOB = b"""{"id": 1, "name": "count", "state": "running", "ended": null, "attempts": 1,
          "exit_code": null, "attempts_list": [{"state": "running"}]}"""

class Earlier(http.server.BaseHTTPRequestHandler):
    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer(b"line 1\n" if "/logs?" in self.path else JOB)
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(JOB)
    def address_string(self):
        return "client"
    def log_message(self, *_):
        pass

with socketserver.UnixStreamServer(sys.argv[1], Earlier) as server:
    server.serve_forever()
PYTHON
python3 earlier.py "$work/earlier" &
earlier=$!
wait_for test -S earlier
export RENZAN_SOCKET=$work/earlier
expect_exit 78 "the daemon is of an earlier version" timeout 20 $renzan job logs -f 1
expect_exit 78 "the daemon is of an earlier version" timeout 20 $renzan submit count.yaml --follow
expect_exit 0 "line 1" timeout 20 $renzan job logs 1
