#!/usr/bin/env bash
# A damaged record of a job in the daemon's database ends that job, and no other.
source "$(dirname "$0")/cluster_lib.sh" "$1"

daemon="cluster up --nodes 2 --gpus-per-node 4 --simulated"
$renzan $daemon
$renzan submit --wait --name ended --gpus 4 -- true                      # 1
$renzan submit --name damaged --gpus 4 --set grace=10s -- \
  sh -c 'trap "exit 75" TERM; echo $$ >pid; sleep 1000 & wait'          # 2
wait_for is 2 state running
wait_for test -s pid
$renzan submit --name sound --gpus 4 -- sleep 1000                      # 3
wait_for is 3 state running
$renzan submit --name waits --gpus 4 -- sleep 1000                      # 4
expect_exit 66 "there is no queue 'defualt': did you mean 'default'?" \
  $renzan job update 4 --to-queue defualt

$renzan cluster down
python3 - <<'PY'
import sqlite3
db = sqlite3.connect("state/state.db")
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
db.close()
with open("state/state.db", "r+b") as f:
    data = f.read()
    for name in (b'"name":"damaged"', b'"name":"ended"'):
        assert name in data, name
        data = data.replace(name, name[:-2] + b'X"')
    f.seek(0)
    f.write(data)
PY
$renzan $daemon
wait_for is 2 state failed
for verb in explain show; do
  expect_exit 0 "so it was ended: submit it again" $renzan job $verb 2
  grep -qF "its record in state.db is damaged (its row of table jobs has a wrong checksum)" out.txt ||
    fail "job $verb does not say what is damaged"
done
kill -0 "$(cat pid)" 2>/dev/null && fail "the worker of a damaged job still runs"
grep -q "job 2: its record in state.db is damaged .*: this job is ended, and no other" \
  state/daemon.log || fail "daemon.log does not say what is damaged"
ls state/state.db.corrupt-* 2>/dev/null && fail "the whole database counts as corrupt"

# The others live on, with its room.
wait_for is 4 state running
expect_field 3 state running
expect_field 3 attempts 1
expect_exit 0 "default" $renzan cluster usage

# A job that had ended is still there, as far as it is known.
expect_field 1 state done
expect_exit 0 "its record in state.db is damaged" $renzan job show 1
[ "$($renzan jobs --all --json | python3 -c 'import json, sys
print(*[job["state"] for job in json.load(sys.stdin)["jobs"]])')" = "done failed running running" ] ||
  fail "$($renzan jobs --all)"

# Its id is not used again, and the next daemon finds nothing damaged.
$renzan job cancel 3 4
$renzan cluster down
$renzan $daemon
[ "$(grep -c "this job is ended, and no other" state/daemon.log)" = 1 ] || fail "it is ended again"
expect_field 2 state failed
$renzan submit --wait -- true
expect_field 5 state "done"
