# A job's processes are ended however they try to leave: other sessions, no environment, parents
# that have ended, and chains whose links hand on to a new process every 20 ms. When the job is
# cancelled, and when its supervisor is killed. Where control groups can be made, they also limit
# CPU time and memory.
source "$(dirname "$0")/cluster_lib.sh" "$@"
cat >cluster.yaml <<'YAML'
pools: {own: {resources: {cpu: 4, memory: 4GiB}}}
simulated: true
YAML
up() { $renzan cluster up cluster.yaml "$@" >/dev/null; }
doctor_says() { $renzan doctor --dir "$work" --json | python3 -c 'import json, sys
print(*[check["state"] for check in json.load(sys.stdin)["checks"] if check["name"] == sys.argv[1]])' "$1"; }
[ "$(doctor_says "control groups")" != missing ] || skip "no control groups can be made here"

# Links write their number, so that one that lives is seen.
cat >link <<'SH'
echo >>"$2"
sleep 0.02
setsid env -i /bin/sh "$1" "$1" "$2" &
SH
cat >escape <<'SH'
[ "$RENZAN_ATTEMPT" = 0 ] || exit 0
for chain in 1 2 3; do setsid env -i /bin/sh "$PWD/link" "$PWD/link" "$PWD/$1" & done
setsid env -i /bin/sh -c '(sleep 1234567 & echo $! >>"$0") & exit' "$PWD/$1.pids"
trap '' TERM
exec sleep 1000
SH
beats() { [ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -gt 20 ] && [ -s "$1.pids" ]; }
# expect_quiet NAME: nothing of that job writes any longer.
expect_quiet() {
  local before
  expect_no_process_left $(cat "$1.pids")
  before=$(stat -c %s "$1")
  sleep 0.3
  [ "$(stat -c %s "$1")" = "$before" ] || fail "$1: a chain is still alive"
}
# are_removed DIRECTORY...
are_removed() {
  local group
  for group in "$@"; do [ ! -e "$group" ] || return 1; done
}
# groups_of ID: the control groups of its first attempt.
groups_of() {
  python3 - "$RENZAN_STATE_DIR/jobs/$1/attempt-0/plan.json" <<'PY'
import json, sys
groups = json.load(open(sys.argv[1]))["cgroups"]
parents = {groups[kind]["directory"] for kind in ("hold", "cpu", "memory")} - {""}
print(*[parent + "/" + groups["name"] for parent in parents])
PY
}

up
grep -q "control groups in .* hold the processes of jobs" "$RENZAN_STATE_DIR/daemon.log" ||
  fail "the daemon's log does not say where jobs are held"
id=$($renzan submit --set grace=100ms -- sh escape cancelled)
wait_for beats cancelled
groups=$(groups_of "$id")
[ -d "$groups" ] || fail "there is no $groups"
$renzan job cancel "$id" >/dev/null
wait_for is "$id" state cancelled
expect_quiet cancelled
are_removed $groups || fail "$groups is left"

id=$($renzan submit -- sh escape killed)
wait_for beats killed
groups=$(groups_of "$id")
kill -KILL "$(cat "$RENZAN_STATE_DIR/jobs/$id/attempt-0/lock")"
wait_for is "$id" state 'done'
grep -q "its supervisor ended without a report" <<<"$($renzan job show "$id")" || fail "it was not lost"
expect_quiet killed
are_removed $groups || fail "$groups is left"
grep -q "that its supervisor left behind" "$RENZAN_STATE_DIR/daemon.log" ||
  fail "the daemon's log does not say that it killed them"

# Limits, where the daemon can set them.
$renzan cluster down >/dev/null
if ! up --set cgroups.cpu=true --set cgroups.memory=true --set enforce_memory=false 2>why.txt; then
  grep -q "the daemon cannot limit jobs: .*cgroups.parent" why.txt || { cat why.txt >&2; fail "no reason"; }
  echo "limits are left out: $(cat why.txt)"
  exit 0
fi
id=$($renzan submit --cpus 1.5 --memory 64MiB -- sh -c 'echo up; sleep 1000')
wait_for is "$id" state running
quota() { cat $(printf '%s/cpu.max ' $groups) $(printf '%s/cpu.cfs_quota_us ' $groups) 2>/dev/null; }
groups=$(groups_of "$id")
wait_for sh -c "ls -d $groups >/dev/null"
[ "$(quota | cut -d' ' -f1)" = 150000 ] || fail "quota of 1.5 CPUs: $(quota)"
$renzan job cancel "$id" >/dev/null
status=0
$renzan submit --wait --memory 64MiB -- sh -c 'head -c 300M /dev/zero | tail' >id.txt 2>log.txt || status=$?
[ $status -ne 0 ] || fail "a job used more memory than it requested"
grep -q "the kernel killed 1 process of the job, which needed more than the 64MiB of memory that it requests (resources.memory)" log.txt ||
  { show_log; fail "the end has no reason"; }
expect_exit 0 "" $renzan submit --wait --memory 64MiB -- sh -c 'head -c 20M /dev/zero | tail >kept'
wait_for is "$id" state cancelled
are_removed $groups || fail "$groups is left"
