# Invalid jobs and clusters, missing daemons: one clear error and the right exit code each, and no
# partial effects.
source "$(dirname "$0")/lib.sh" "$@"
export RENZAN_STATE_DIR=$work/state
unset RENZAN_SOCKET
daemon_pid() {
  $renzan cluster status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])'
}
end_daemon() { [ ! -e state/socket ] || $renzan cluster down --stop-jobs 2>/dev/null || true; }
trap 'end_daemon; rm -rf "$work"' EXIT

# Errors that are found without a daemon.
printf 'command: [sleep, 1]\nreplica: 2\n' >typo.yaml
expect_exit 78 "typo.yaml:2:1: unknown key 'replica' at the top level: did you mean 'replicas'?" \
  $renzan submit typo.yaml
expect_exit 78 "--set replicas=3..2" $renzan submit --set replicas=3..2 -- sleep 1
expect_exit 78 "resources.memory must be an amount" $renzan submit --memory lots -- sleep 1
expect_exit 78 "gpu must be a whole number" $renzan submit --gpus half -- sleep 1
expect_exit 66 "no_such.yaml" $renzan submit no_such.yaml
expect_exit 64 "renzan submit -- sleep 1" $renzan submit sleep 1
expect_exit 64 "sleep is not a file: a command goes after --, as in renzan submit -- sleep" \
  $renzan submit sleep
printf 'print("{a: [")\n' >print.py
for program in "$renzan" print.py; do
  expect_exit 64 "$program is a program: it goes after --, as in renzan submit -- $program" \
    $renzan submit "$program"
done
printf 'seed: 1\ndata:\n  train: {path: data}\nmodel: {embedding_dim: 8}\n' >train.yaml
expect_exit 64 "train.yaml is a training's configuration: submit renzan submit -- renzan train train.yaml" \
  $renzan submit train.yaml
for flag in "--memory lots" "--replicas 2-4" "--timeout 2hours"; do
  expect_exit 78 "$flag: " $renzan submit $flag -- sleep 1
done
expect_exit 64 "a command after --" $renzan submit
expect_exit 64 "ID" $renzan job show twelve

# Printed configurations have every key, round-trip, and need no daemon either.
$renzan submit --print-config --gpus 2 -- sleep 1 >job.yaml
grep -qx '# higher goes first' job.yaml || fail "keys are printed without their documentation"
grep -qx '  gpu: 2' job.yaml || fail "flags are not printed"
$renzan submit --print-config job.yaml | cmp - job.yaml
$renzan submit --print-config >empty.yaml
grep -qx 'command: \[PROGRAM\]' empty.yaml || fail "no template of a job"
expect_exit 78 "unknown key 'replica'" $renzan submit --print-config typo.yaml
$renzan cluster up --nodes 4 --gpus-per-node 8 --simulated --print-config >printed.yaml
grep -qx '    guaranteed:' printed.yaml || fail "no keys of queues"
$renzan cluster up --print-config printed.yaml | cmp - printed.yaml
$renzan cluster up --print-config printed.yaml --set pools.local.nodes=7 >set.yaml
grep -q 'nodes: "7"' set.yaml || fail "--set is not printed"

# No daemon; an invalid socket.
for verb in "jobs" "nodes" "job show 1" "cluster status" "cluster down" "submit -- sleep 1"; do
  expect_exit 69 "start one with \`renzan cluster up\`" $renzan $verb
done
long=$work/$(printf 's%.0s' $(seq 120))
expect_exit 78 "at most 107" $renzan jobs --socket "$long"
expect_exit 78 "at most 107" $renzan cluster up --socket "$long"
# A program that was copied without the supervisor cannot start jobs.
mkdir alone
cp "$renzan" "$(dirname "$renzan")/../lib/librenzan_jobs.so" alone
expect_exit 66 "renzan-supervisor is missing" alone/renzan cluster up
[ ! -e state ] || fail "a state directory was created"

# Invalid clusters.
printf 'pools: {own: {nodes: 2, resources: {gpu: 4}}}\nqueues: {a: {guaranteed: {gpu: 9}}}\n' >quota.yaml
expect_exit 78 "quota.yaml: queues are guaranteed 9 of gpu together" $renzan cluster up quota.yaml
expect_exit 66 "no_such.yaml" $renzan cluster up no_such.yaml
printf 'pools: {own: {nodes: 2, resources: {gpu: 40}}, more: {nodes: 0..3, resources: {gpu: 1}}}' >gpus.yaml
expect_exit 78 "83 GPUs together (3 nodes of 1 in more, 2 nodes of 40 in own), but this machine has" \
  $renzan cluster up gpus.yaml
grep -qF "(simulated: true, or --simulated without a file)" out.txt || fail "it does not say what to do"
expect_exit 78 "64 GPUs together" $renzan cluster up --nodes 2 --gpus-per-node 32
expect_exit 64 "not both" $renzan cluster up quota.yaml --nodes 2
expect_exit 64 "--nodes" $renzan cluster up --nodes 0
[ ! -e state ] || fail "a state directory was created"

if [ "$(id -u)" = 0 ]; then
  mkdir theirs
  chown 65534 theirs
  expect_exit 73 "theirs belongs to another user (user id 65534)" $renzan cluster up --state theirs
  rmdir theirs
fi

# The controller without a cluster.
expect_exit 66 "--kubeconfig: there is no file /nope: name one" \
  $renzan cluster kubernetes run --kubeconfig /nope
expect_exit 66 "or name one by --kubeconfig" \
  env -u KUBECONFIG -u KUBERNETES_SERVICE_HOST HOME=/nope $renzan cluster kubernetes run

# One daemon per state directory and socket.
$renzan cluster up --nodes 2 --gpus-per-node 4 --simulated >/dev/null
pid=$(daemon_pid)
expect_exit 69 "already running at $work/state/socket (process $pid)" $renzan cluster up
expect_exit 69 "already running" $renzan cluster up --socket "$work/other"
mv state/socket removed
expect_exit 69 "although one is running (pid $pid)" $renzan jobs
expect_exit 69 "if its socket was removed, with \`kill\` and this number" $renzan cluster up
mv removed state/socket

# Errors of the daemon.
expect_exit 78 "can never run here" $renzan submit --gpus 5 -- sleep 1
expect_exit 78 "can never run here" $renzan submit --replicas 9 --gpus 1 -- sleep 1
printf 'command: [a]\nqueue: defualt\n' >queue.yaml
for command in "submit --queue defualt -- sleep 1" "cluster what-if --submit queue.yaml" \
    "jobs --queue defualt" "job cancel --queue defualt" "cluster what-if --quota defualt.gpu=1"; do
  expect_exit 66 "there is no queue 'defualt': did you mean 'default'?" $renzan $command
done
expect_exit 66 "there is no node 'n9'" $renzan submit --exclude n9 -- sleep 1
expect_exit 66 "there is no job 7" $renzan job show 7
expect_exit 66 "there is no job 7" $renzan job cancel 7
expect_exit 66 "n9" $renzan nodes drain n9
expect_exit 64 "must be a duration" $renzan nodes drain local-0 --notice soon
expect_exit 64 "'runing' is not one of pending, running, " $renzan jobs --state runing
grep -qF "did you mean 'running'?" out.txt || fail "no state is proposed"
expect_exit 64 "user ann has no cap" $renzan cluster override ann --max-gpus 8 --for 1h
expect_exit 64 "at least one change" $renzan cluster what-if
expect_exit 64 "--add-nodes local: must be NAME=NUMBER" $renzan cluster what-if --add-nodes local
expect_exit 64 "--add-nodes local=-1: must be NAME=NUMBER" $renzan cluster what-if --add-nodes local=-1
expect_exit 66 "there is no pool 'locl': did you mean 'local'?" \
  $renzan cluster what-if --add-nodes locl=1
expect_exit 66 "n9" $renzan cluster what-if --remove-node n9
expect_exit 64 "--quota default=4: must be QUEUE.gpu=NUMBER" $renzan cluster what-if --quota default=4
expect_exit 66 "defualt" $renzan cluster what-if --quota defualt.gpu=4
expect_exit 64 "--assume never" $renzan cluster what-if --add-nodes local=1 --assume never
printf 'command: [a]\nresources: {gpu: 5}\n' >big.yaml
expect_exit 78 "big.yaml could never run" $renzan cluster what-if --submit big.yaml
expect_exit 64 "--limit" $renzan jobs --all --limit -1
deep=$(printf 'a.%.0s' {1..20000})
expect_exit 78 "nested too deeply" $renzan submit --set "${deep}a=1" -- sleep 1
[ "$($renzan jobs --all --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["jobs"]))')" = 0 ] ||
  fail "a rejected job was kept"

# A job's exit code and output are those of its processes.
expect_exit 3 "" $renzan submit --wait -- sh -c 'exit 3'
expect_exit 0 "hello" $renzan submit --follow -- echo hello

# --limit; a job of what-if has no id.
expect_exit 0 "1 older job(s) not listed: use --limit 2" $renzan jobs --all --limit 1
[ "$($renzan jobs --all --limit 1 | tail -n +2 | wc -l)" = 1 ] || fail "not one job"
[ "$($renzan jobs --all | tail -n +2 | wc -l)" = 2 ] || fail "not two jobs"
printf 'command: [a]\nresources: {gpu: 4}\n' >fits.yaml
$renzan cluster what-if --submit fits.yaml >then.txt
grep -q '^ *job  now  changed' then.txt || fail "$(cat then.txt)"
grep -q '^fits.yaml  -  ' then.txt || fail "$(cat then.txt)"

# In a directory that no longer exists.
in_removed() {
  mkdir removed
  (cd removed && rmdir ../removed && "$@")
}
for verb in "cluster what-if --submit $work/fits.yaml" "submit $work/fits.yaml" "submit -- sleep 1" \
    "cluster up --state here"; do
  expect_exit 66 "the current directory cannot be determined" in_removed $renzan $verb
done

# A corrupt database is copied and refused, never overwritten.
$renzan cluster down 2>/dev/null
expect_exit 69 "no daemon" $renzan jobs
python3 - <<'PY'
with open("state/state.db", "r+b") as f:
    f.write(b"\xa5" * 4096)
PY
sha256sum state/state.db >before.txt
expect_exit 65 "state.db" $renzan cluster up --nodes 2 --gpus-per-node 4 --simulated
ls state/state.db.corrupt-* >/dev/null || fail "no copy of the corrupt database"
sha256sum --quiet -c before.txt || fail "the corrupt database was changed"
