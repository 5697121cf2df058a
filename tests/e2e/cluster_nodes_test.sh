# Maintenance as an operator does it: a cordoned node gets nothing new, a drained one empties without
# losing work, and both return to service.
source "$(dirname "$0")/lib.sh" "$@"
export RENZAN_STATE_DIR=$work/state
unset RENZAN_SOCKET
touch log.txt  # shown by wait_for
trap '$renzan cluster down --stop-jobs 2>/dev/null || true; rm -rf "$work"' EXIT

start() { $renzan cluster up --nodes 2 --gpus-per-node 2 --cpus-per-node 8 >/dev/null; }
# job_field ID KEY, node_field NAME KEY: as JSON.
job_field() { $renzan job show "$1" --json | python3 -c 'import json, sys
print(json.dumps(json.load(sys.stdin)[sys.argv[1]]))' "$2"; }
node_field() { $renzan nodes --json | python3 -c 'import json, sys
print(*[json.dumps(node[sys.argv[2]]) for node in json.load(sys.stdin)["nodes"]
        if node["name"] == sys.argv[1]])' "$1" "$2"; }
is() { [ "$(job_field "$1" state)" = "\"$2\"" ]; }
expect_node() {
  [ "$(node_field "$1" "$2")" = "$3" ] || { $renzan nodes >&2; fail "$1: $2 is not $3"; }
}
# Runs until the file exists; stopped before that, it saves its work, or not.
cat >job.sh <<'SH'
[ "$2" = loses ] || trap 'echo saved; exit 75' TERM
echo "on $RENZAN_NODE"
until [ -e "$1" ]; do sleep 0.05; done
SH

start
plain=$($renzan submit --gpus 1 -- sh "$work/job.sh" "$work/plain" loses)
saves=$($renzan submit --gpus 1 --set checkpoint.on_stop=true -- sh "$work/job.sh" "$work/saves")
wait_for is "$plain" running
wait_for is "$saves" running
node=$($renzan job logs "$plain" | sed -n 's/^on //p')  # bin packing: both are on it
[ "$node" = local-0 ] && other=local-1 || other=local-0
expect_node "$node" jobs "[$plain, $saves]"

# Cordoned: what runs there stays, nothing new starts, also after a restart of the daemon.
expect_exit 0 "$node: cordoned" $renzan nodes cordon "$node"
expect_node "$node" state '"cordoned"'
first=$($renzan submit --gpus 2 -- sleep 1000)
wait_for is "$first" running
expect_node "$other" jobs "[$first]"
second=$($renzan submit --gpus 2 -- sleep 1000)
wait_for is "$second" pending
$renzan cluster down >/dev/null
start
expect_node "$node" state '"cordoned"'
expect_node "$node" jobs "[$plain, $saves]"
is "$second" pending || fail "job $second started on a cordoned node"
for id in "$second" "$first"; do
  expect_exit 0 "" $renzan job cancel "$id"
done
wait_for is "$first" cancelled

# Drained: the job that saves moves, the other may end there.
expect_exit 0 "$node: draining" $renzan nodes drain "$node"
moved() { [ "$(node_field "$other" jobs)" = "[$saves]" ]; }
wait_for moved
expect_node "$node" jobs "[$plain]"
expect_exit 0 "the job may finish there" $renzan job explain "$plain"
$renzan job logs "$saves" --attempt 0 | grep -qx saved || fail "job $saves was not stopped cleanly"
touch plain
wait_for is "$plain" 'done'
[ "$(job_field "$plain" attempts)" = 1 ] || fail "job $plain was interrupted"

# Back in service.
expect_exit 0 "" $renzan nodes uncordon "$node"
expect_node "$node" state '"ready"'
back=$($renzan submit --gpus 2 -- sleep 1000)
wait_for is "$back" running
expect_node "$node" jobs "[$back]"
touch saves
wait_for is "$saves" 'done'

expect_exit 66 "there is no node nowhere" $renzan nodes cordon nowhere
expect_exit 0 "" $renzan nodes drain "$node" --notice 10m
expect_exit 64 "it cannot be cordoned" $renzan nodes cordon "$node"
