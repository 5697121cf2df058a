# Maintenance as an operator does it: a cordoned node gets nothing new, a drained one empties without
# losing work, and both return to service.
source "$(dirname "$0")/cluster_lib.sh" "$@"

start() { $renzan cluster up --nodes 2 --gpus-per-node 3 --simulated --cpus-per-node 8 >/dev/null; }
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
wait_for is "$plain" state running
wait_for is "$saves" state running
# Bin packing: both are on it.
node=$($renzan nodes --json |
  python3 -c 'import json, sys; print(*[n["name"] for n in json.load(sys.stdin)["nodes"] if n["jobs"]])')
[ "$node" = local-0 ] && other=local-1 || other=local-0
expect_node "$node" jobs "[$plain, $saves]"

# Cordoned: what runs there stays, nothing new starts, also after a restart of the daemon.
expect_exit 0 "$node: cordoned" $renzan nodes cordon "$node"
expect_node "$node" state '"cordoned"'
first=$($renzan submit --gpus 3 -- sleep 1000)
wait_for is "$first" state running
expect_node "$other" jobs "[$first]"
second=$($renzan submit --gpus 1 -- sleep 1000)
expect_waits() {
  expect_explanation "$second" "$node is cordoned"
  is "$second" state pending || fail "job $second started on a cordoned node"
}
expect_waits
$renzan cluster down >/dev/null
start
expect_node "$node" state '"cordoned"'
expect_node "$node" jobs "[$plain, $saves]"
expect_waits
for id in "$second" "$first"; do
  expect_exit 0 "" $renzan job cancel "$id"
done
wait_for is "$first" state cancelled

# Drained: the job that saves moves, the other may end there.
expect_exit 0 "$node: draining" $renzan nodes drain "$node"
moved() { [ "$(node_field "$other" jobs)" = "[$saves]" ]; }
wait_for moved
expect_node "$node" jobs "[$plain]"
expect_exit 0 "the job may finish there" $renzan job explain "$plain"
grep -qx saved <<<"$($renzan job logs "$saves" --attempt 0)" || fail "job $saves was not stopped cleanly"
touch plain
wait_for is "$plain" state 'done'
[ "$(job_field "$plain" attempts)" = 1 ] || fail "job $plain was interrupted"

# Back in service.
expect_exit 0 "" $renzan nodes uncordon "$node"
expect_node "$node" state '"ready"'
back=$($renzan submit --gpus 3 -- sleep 1000)
wait_for is "$back" state running
expect_node "$node" jobs "[$back]"
touch saves
wait_for is "$saves" state 'done'

expect_exit 66 "there is no node nowhere" $renzan nodes cordon nowhere
expect_exit 0 "" $renzan nodes drain "$node" --notice 10m
expect_exit 64 "it cannot be cordoned" $renzan nodes cordon "$node"

# Of a pool that the configuration no longer has: listed while a job runs there.
expect_exit 0 "" $renzan cluster down --stop-jobs
pool() { echo "{pools: {$1: {nodes: $2, resources: {cpu: 8, memory: 1GiB, gpu: $3}}}, simulated: true}" >cluster.yaml; }
up() { $renzan cluster up cluster.yaml >/dev/null; }
pool own 1 4
$renzan cluster up cluster.yaml --state other >/dev/null
export RENZAN_STATE_DIR=$work/other
three=$($renzan submit --gpus 3 -- sh "$work/job.sh" "$work/three" loses)
wait_for is "$three" state running
$renzan cluster down >/dev/null
pool new 1 4
up
expect_exit 0 "" $renzan nodes
grep -Eq '^own-0 +- +draining .*3/3 +1' out.txt || { cat out.txt >&2; fail "own-0 is not listed"; }
$renzan cluster down >/dev/null

# One that has fewer GPUs by now: drained until what runs there fits. No job gets more than it has.
pool own 1 2
up
expect_exit 0 "" $renzan nodes
grep -Eq '^own-0 +own +draining .*3/3 +1' out.txt || { cat out.txt >&2; fail "own-0 is not drained"; }
two=$($renzan submit --gpus 2 -- sh -c 'echo "devices $CUDA_VISIBLE_DEVICES"')
expect_exit 0 "own-0: ready once its old workers have ended" $renzan nodes restore own-0
touch three
wait_for is "$two" state 'done'
grep -qx 'devices 0,1' <<<"$($renzan job logs "$two")" || fail "$($renzan job logs "$two")"
expect_node own-0 state '"ready"'
[ "$(node_field own-0 capacity | python3 -c 'import json, sys; print(json.load(sys.stdin)["gpu"])')" = 2 ] ||
  fail "own-0 does not have 2 GPUs"
$renzan cluster down --stop-jobs >/dev/null

# A node on which everything fails at once does not eat the queue: each job fails there once at
# most, and it is taken out of service once some have run elsewhere.
cat >cluster.yaml <<YAML
pools: {own: {nodes: 3, resources: {cpu: 2}}}
YAML
up
cat >broken.sh <<'SH'
[ "$RENZAN_NODE" != own-0 ] || exit 1
sleep 0.05
SH
ids=()
for _ in $(seq 20); do
  ids+=("$($renzan submit --retries 1 --set retry_backoff=1ms -- sh "$work/broken.sh")")
done
for id in "${ids[@]}"; do wait_for is "$id" state 'done'; done
expect_node own-0 state '"cordoned"'
expect_exit 0 "own-0 takes no new jobs: " $renzan nodes
grep -Eq 'own-0 takes no new jobs: [0-9]+ jobs' out.txt || fail "$(cat out.txt)"
expect_exit 0 "own-0: ready" $renzan nodes restore own-0
excluding=$($renzan submit --exclude own-0,own-1 -- sh -c 'echo "on $RENZAN_NODE"')
wait_for is "$excluding" state 'done'
grep -qx 'on own-2' <<<"$($renzan job logs "$excluding")" || fail "$($renzan job logs "$excluding")"
expect_exit 66 "there is no node 'own-7'" $renzan submit --exclude own-7 -- true
$renzan cluster down >/dev/null

# Nor a burst without retries: after a few failures there, the user's other jobs wait for others.
$renzan cluster up cluster.yaml --set node_health.suspect_for=0s >/dev/null
cat >broken.sh <<SH
[ "\$RENZAN_NODE" != own-0 ] || exit 1
until [ -e $work/go ]; do sleep 0.05; done
SH
ids=()
for _ in $(seq 20); do ids+=("$($renzan submit -- sh "$work/broken.sh")"); done
# Two at a time: a fourth may have started before the third failed.
avoids() { $renzan nodes | grep -Eq 'own-0 is avoided by jobs of user .* until .*: [34] jobs of that user failed there'; }
wait_for avoids
expect_explanation "${ids[19]}" "own-0 is avoided for another "
touch go
has_ended() { is "$1" state 'done' || is "$1" state failed; }
failed=0
for id in "${ids[@]}"; do
  wait_for has_ended "$id"
  if is "$id" state failed; then failed=$((failed + 1)); fi
done
[ "$failed" -ge 3 ] && [ "$failed" -le 4 ] || fail "$failed of 20 jobs failed"
$renzan cluster down >/dev/null

# A node whose health check fails takes no job until it passes.
echo "node_health: {check: [sh, $work/check.sh], check_interval: 100ms}" >>cluster.yaml
cat >check.sh <<SH
[ ! -e $work/hot ] || { echo "\$RENZAN_NODE is hot"; exit 1; }
SH
touch hot
up
checked=$($renzan submit -- true)
waits_for_check() {
  is_explained "$checked" && grep -q 'own-0 is cordoned (its health check ended with 1: own-0 is hot)' why.txt
}
wait_for waits_for_check
expect_exit 0 "own-2 takes no new jobs: its health check ended with 1: own-2 is hot" $renzan nodes
is "$checked" state pending || fail "job $checked started on a node whose check fails"
rm hot
wait_for is "$checked" state 'done'
expect_node own-0 state '"ready"'
