# The disk of the state directory is full, and was never large enough for room to be reserved:
# requests that need to write fail with 74, running jobs and their records are kept, and everything
# continues once there is space again.
source "$(dirname "$0")/cluster_lib.sh" "$@"
[ "$(id -u)" -eq 0 ] || skip "needs root to mount a small file system"
mkdir small
mount -t tmpfs -o size=4m tmpfs small 2>/dev/null || skip "cannot mount a tmpfs here"
export RENZAN_STATE_DIR=$work/small/state RENZAN_SOCKET=$work/socket
trap '$renzan cluster down --stop-jobs 2>/dev/null || true; umount "$work/small"; rm -rf "$work"' EXIT
cat >cluster.yaml <<'YAML'
pools: {own: {nodes: 1, resources: {cpu: 8, gpu: 2}}}
disk: {keep_free: 0}
simulated: true
YAML
$renzan cluster up cluster.yaml >/dev/null
grep -q "nothing can be recorded if jobs fill the disk: cannot reserve" "$RENZAN_STATE_DIR/daemon.log" ||
  fail "the log does not say that no room is reserved"
jobs() { $renzan jobs --all --json | grep -c '"id"'; }
fill() { dd if=/dev/zero of=small/filler bs=4k 2>/dev/null || true; }

running=$($renzan submit -- sh -c 'until [ -e go ]; do sleep 0.05; done; exit 6')
wait_for is "$running" state running
fill
before=$(jobs)
expect_exit 74 "" $renzan submit -- true
expect_exit 74 "" $renzan submit -- true
expect_exit 74 "" $renzan nodes drain own-0
[ "$(jobs)" = "$before" ] || fail "a rejected job exists"
is "$running" state running || fail "job $running no longer runs"
$renzan cluster status >/dev/null

# The job ends while nothing can be written.
touch go
says_so() { grep -q "cannot record changes (" <<<"$($renzan cluster status)"; }
wait_for says_so
$renzan jobs --all >/dev/null
rm small/filler
wait_for is "$running" state failed
says_so && fail "the trouble is over, but the status says it goes on"
grep -q '^exit code *6$' <<<"$($renzan job show "$running")" || fail "wrong exit code"
expect_exit 0 "" $renzan submit --wait -- true

# A daemon that is killed and restarted on a full disk loses nothing either.
rm go
running=$($renzan submit -- sh -c 'until [ -e go ]; do sleep 0.05; done')
wait_for is "$running" state running
before=$(jobs)
fill
kill -KILL "$($renzan cluster status --json |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')"
status=0
$renzan cluster up cluster.yaml >up.txt 2>&1 || status=$?
[ $status -eq 0 ] || [ $status -eq 74 ] || { cat up.txt >&2; fail "exit $status from cluster up"; }
rm small/filler
[ $status -eq 0 ] || $renzan cluster up cluster.yaml >/dev/null
[ "$(jobs)" = "$before" ] || fail "jobs were lost"
is "$running" state running || fail "job $running was not found again"
touch go
wait_for is "$running" state 'done'
