# Jobs on the real program: exit codes, retries, timeouts, gangs, logs, artifacts, stops, node
# failures, quotas, and `job explain`.
source "$(dirname "$0")/cluster_lib.sh" "$@"
cat >cluster.yaml <<YAML
pools: {local: {nodes: 2, resources: {cpu: 16, memory: 8GiB, gpu: 2}}}
simulated: true
queues: {default: {}, small: {limit: {gpu: 1}}}
users: {$(id -un): {max_gpus: 8}}
YAML
$renzan cluster up cluster.yaml >/dev/null

has_said() { grep -q "$2" <<<"$($renzan job logs "$1" 2>/dev/null)"; }
submit() { $renzan submit "$@"; }

# Retries wait longer each time; the job gets the last exit code.
expect_exit 5 "job 1 ended: failed, exit status 5 (worker 0 on local-0 ended with exit status 5); for its output: renzan job logs 1" submit --wait --retries 2 --set retry_backoff=100ms -- sh -c 'exit 5'
expect_field 1 'state, attempts, failures' "('failed', 3, 3)"
gaps='[b["started"] - a["ended"] for a, b in zip(attempts_list, attempts_list[1:])]'
expect_field 1 "(lambda gaps: gaps[0] >= 100 and gaps[1] >= 200)($gaps)" True
expect_explanation 1 "it ended (failed)"
expect_exit 0 "" submit --wait --retries 1 --set retry_backoff=1ms -- sh -c \
  'test -e "$RENZAN_RUN_DIR/again" || { touch "$RENZAN_RUN_DIR/again"; exit 9; }'
expect_exit 127 "exit status 127 (cannot start worker 0 on local-0: program '$work/no_such_program' " submit --wait -- "$work/no_such_program"
expect_exit 137 "" submit --wait -- sh -c 'kill -KILL $$'

# The timeout limits the total running time.
status=0
submit --wait --timeout 300ms --set grace=100ms -- sleep 1000 >/dev/null || status=$?
[ $status -ne 0 ] || fail "a job that timed out ended with 0"
expect_field 5 state timeout

# A gang: each worker knows its rank and has its own devices.
cat >gang.sh <<'SH'
echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $RENZAN_NODE $CUDA_VISIBLE_DEVICES"
mkdir -p kept
echo "$RENZAN_NODE $CUDA_VISIBLE_DEVICES $MASTER_ADDR:$MASTER_PORT" >"kept/worker-$RANK"
SH
expect_exit 0 "" submit --wait --replicas 4 --gpus 1 --artifacts kept -- sh gang.sh
for rank in 0 1 2 3; do
  $renzan job logs 6 --worker $rank
done >ranks.txt
[ "$(cut -d' ' -f1 ranks.txt | tr '\n' ' ')" = "0/4 1/4 2/4 3/4 " ] || fail "$(cat ranks.txt)"
[ "$(cut -d' ' -f3,4 ranks.txt | sort -u | wc -l)" = 4 ] || fail "$(cat ranks.txt)"
[ "$(cut -d' ' -f2 ranks.txt | sort | tr '\n' ' ')" = "0/2 0/2 1/2 1/2 " ] || fail "$(cat ranks.txt)"
for rank in 0 1 2 3; do
  cmp "kept/worker-$rank" "state/jobs/6/artifacts/kept/worker-$rank"
done
[ "$(cut -d' ' -f3 kept/* | sort -u | wc -l)" = 1 ] || fail "different MASTER_ADDR:MASTER_PORT: $(cat kept/*)"

# The words of a command are as they were given.
expect_exit 0 "" submit --wait -- printf '<%s>' '[a,b]' '' -- --gpus '"' 'x y'
[ "$($renzan job logs 7)" = '<[a,b]><><--><--gpus><"><x y>' ] || fail "words: $($renzan job logs 7)"

# What was not kept is said, although the job is done.
expect_exit 0 "not all of its artifacts could be collected from $work/nosuch (it does not exist)" \
  submit --wait --artifacts nosuch -- true

# A job that is named twice is cancelled once.
twice=$(submit -- sleep 1000)
expect_exit 0 "job $twice: " $renzan job cancel "$twice" "$twice"
wait_for is "$twice" state cancelled

# Logs can be followed to the end; processes left behind are killed.
id=$(submit -- sh -c 'setsid sleep 1234 & echo $!; sleep 0.5; seq 5')
$renzan job logs "$id" -f >followed.txt
[ "$(tail -n +2 followed.txt)" = "$(seq 5)" ] || fail "followed: $(cat followed.txt)"
wait_for is "$id" state done
expect_no_process_left "$(head -1 followed.txt)"
[ "$($renzan job logs "$id" --tail 2)" = "$(seq 4 5)" ] || fail "--tail does not work"
expect_exit 66 "there is no attempt 3" $renzan job logs "$id" --attempt 3

# Logs are rotated at 64 MiB and read as one stream.
id=$(submit --wait -- seq 9000000)
[ "$(ls state/jobs/"$id"/attempt-0 | grep -c '^worker-0.log')" = 2 ] || fail "not rotated"
$renzan job logs "$id" | cmp - <(seq 9000000)

# A job can be awaited after its submission, too, also when it has ended.
id=$(submit -- sh -c 'sleep 0.5; exit 7')
for _ in 1 2; do expect_exit 7 "job $id ended: failed, exit status 7" $renzan job wait "$id"; done
expect_exit 66 "there is no job 999" $renzan job wait 999

# Cancelled, and killed after its grace period.
id=$(submit -- sh -c 'trap "echo asked; exit 0" TERM; echo up; while :; do sleep 0.05; done')
wait_for has_said "$id" up
$renzan job cancel "$id" --json >cancelled.json
python3 -c 'import json, sys
assert json.load(sys.stdin) == {"job": sys.argv[1], "state": "stopping"}' "$id" <cancelled.json ||
  fail "job cancel --json printed: $(cat cancelled.json)"
wait_for is "$id" state cancelled
has_said "$id" asked || fail "it got no SIGTERM"
id=$(submit --set grace=100ms -- sh -c 'trap "" TERM; echo up; while :; do sleep 0.05; done')
wait_for has_said "$id" up
$renzan job cancel "$id" >/dev/null
wait_for is "$id" state cancelled

# Several at once: one that is not there does not keep the others.
first=$(submit -- sleep 1000) second=$(submit -- sleep 1000)
wait_for is "$second" state running
expect_exit 66 "there is no job 999" $renzan job cancel "$first" 999 "$second"
wait_for is "$first" state cancelled
wait_for is "$second" state cancelled

# Or those that match, unless they have ended.
first=$(submit --name sweep-1 -- sleep 1000) second=$(submit --name sweep-2 -- sleep 1000)
other=$(submit --name other --queue small --gpus 1 -- sleep 1000)
waiting=$(submit --name sweep-3 --queue small --gpus 1 -- sleep 1000)
wait_for is "$other" state running
expect_exit 0 "job $waiting: cancelled" $renzan job cancel --state pending --name 'sweep-*'
expect_exit 0 "" $renzan job cancel --name 'sweep-*' --json
wait_for is "$first" state cancelled
wait_for is "$second" state cancelled
is "$other" state running || fail "a job that does not match was cancelled"
expect_exit 0 "no jobs match" $renzan job cancel --name 'sweep-*'
expect_exit 0 "no jobs match" $renzan job cancel --queue small --user nobody
expect_exit 64 "which jobs?" $renzan job cancel
expect_exit 64 "is empty" $renzan job cancel --queue '' --state pending
expect_exit 64 "not both" $renzan job cancel "$other" --queue small
is "$other" state running || fail "a job was cancelled in spite of an error"

# A job that is held does not start, nor start again.
id=$(submit --name held --queue small --gpus 1 -- true)
expect_exit 0 "job $id: pending; held" $renzan job hold "$id"
expect_exit 0 "job $other: stopping" $renzan job cancel --queue small --name other
wait_for is "$other" state cancelled
expect_explanation "$id" "held by $(id -un): \`renzan job release $id\` lets it start"
is "$id" 'state, reason' "('pending', 'held')" || fail "a held job was started, or is not shown as held"
expect_exit 0 "job $id: pending; released" $renzan job release --name held
wait_for is "$id" state done

# A job that waits can get another queue and priority, one that runs another time limit.
running=$(submit --queue small --gpus 1 -- sleep 1000)
waiting=$(submit --queue small --gpus 1 -- true)
wait_for is "$running" state running
is "$waiting" state pending || fail "a queue's limit does not hold"
expect_exit 0 "job $waiting: pending; priority 0 -> 3, queue small -> default" \
  $renzan job update "$waiting" --priority 3 --to-queue default
wait_for is "$waiting" state done
expect_field "$waiting" 'queue, priority' "('default', 3)"
expect_exit 64 "its queue can be changed only while it waits" \
  $renzan job update "$running" --to-queue default
expect_exit 78 "--timeout soon: " $renzan job update "$running" --timeout soon
expect_exit 64 "what is to change?" $renzan job update "$running"
expect_exit 0 "it was so already" $renzan job update --queue small --timeout 0s
expect_exit 0 "timeout 0s -> 100ms" $renzan job update "$running" --timeout 100ms
wait_for is "$running" state timeout

# A job that checkpoints resumes where it was: after a manual preemption, a drain with notice, and a
# preemption by a job of higher priority. After a failure without notice, unsaved steps are repeated.
cat >steps.sh <<'SH'
at=0
[ ! -e "$RENZAN_CHECKPOINT_DIR/at" ] || at=$(cat "$RENZAN_CHECKPOINT_DIR/at")
stop=''
trap 'stop=yes' TERM
while [ ! -e finish ]; do
  # Not in the trap: between the next two lines it would save a step that is not done.
  [ -z "$stop" ] || { echo $at >"$RENZAN_CHECKPOINT_DIR/at"; exit 75; }
  at=$((at + 1))
  echo "$at" >>"$RENZAN_RUN_DIR/steps"
  sleep 0.05
done
SH
id=$(submit --gpus 2 --replicas 2 --checkpoints --set 'environment={RANK_0_ONLY: "1"}' -- sh -c \
  '[ "$RANK" != 0 ] || exec sh steps.sh; while [ ! -e finish ]; do sleep 0.05; done')
runs_again() { is "$id" 'state, attempts' "('running', $1)"; }
has_steps() { [ "$(cat "state/jobs/$id/run/steps" 2>/dev/null | wc -l)" -ge "$1" ]; }
steps() { wc -l <"state/jobs/$id/run/steps"; }
wait_for has_steps 3
$renzan job preempt "$id" >/dev/null
wait_for runs_again 2
wait_for has_steps $(($(steps) + 3))
important=$(submit --priority 9 --gpus 1 -- sh -c 'while [ ! -e go ]; do sleep 0.05; done')
wait_for is "$important" state running
expect_explanation "$id" "needs 2 workers at the same time, each with 2 GPUs"
touch go
wait_for runs_again 3
wait_for has_steps $(($(steps) + 3))
$renzan nodes drain local-1 --notice 60s >/dev/null
wait_for is "$id" state pending
expect_explanation "$id" "needs 2 workers at the same time, each with 2 GPUs"
$renzan nodes restore local-1 >/dev/null
wait_for runs_again 4
wait_for has_steps $(($(steps) + 3))
# A copy, because the job continues.
cp "state/jobs/$id/run/steps" steps-so-far
diff <(seq "$(wc -l <steps-so-far)") steps-so-far || fail "steps were lost or done twice"
$renzan nodes fail local-1 >/dev/null
wait_for is "$id" state pending
expect_explanation "$id" "needs 2 workers at the same time, each with 2 GPUs"
$renzan nodes restore local-1 >/dev/null
wait_for runs_again 5
# A node can be restored before its workers have ended.
$renzan nodes fail local-1 >/dev/null
expect_exit 0 "local-1: ready" $renzan nodes restore local-1
wait_for runs_again 6
touch finish
wait_for is "$id" state done
expect_field "$id" failures 0
diff <(seq "$(sort -n "state/jobs/$id/run/steps" | tail -1)") \
  <(sort -nu "state/jobs/$id/run/steps") || fail "steps were left out"

# An elastic job shrinks for another job. It grows on a restart; otherwise it would grow only after
# some time.
rm -f go finish
id=$(submit --gpus 1 --replicas 1..4 --checkpoints -- sh -c \
  'trap "exit 75" TERM; while [ ! -e finish ]; do sleep 0.05; done')
wait_for is "$id" workers 4
other=$(submit --priority 1 --gpus 2 -- sh -c 'while [ ! -e go ]; do sleep 0.05; done')
wait_for is "$other" state running
wait_for is "$id" workers 2
touch go
wait_for is "$other" state done
$renzan job preempt "$id" >/dev/null
wait_for is "$id" 'state, workers' "('running', 4)"
touch finish
wait_for is "$id" state done

# A queue's limit and a user's cap, and how they are explained; a cap can be overridden.
rm -f go finish
wait_here='while [ ! -e go ]; do sleep 0.05; done'
first=$(submit --queue small --gpus 1 -- sh -c "$wait_here")
second=$(submit --queue small --gpus 1 -- sh -c "$wait_here")
wait_for is "$first" state running
expect_explanation "$second" "queue small has a limit of 1 GPU; it uses 1 GPU"
touch go
wait_for is "$second" state done
rm go

# After a timeout, the exit status does not ask for another attempt, whatever the program returned.
expect_exit 1 "" submit --wait --timeout 300ms -- sh -c 'trap "exit 75" TERM; sleep 1000 & wait'

expect_exit 66 "did you mean 'small'?" $renzan jobs --queue smal
expect_exit 0 "" $renzan jobs --queue small

$renzan cluster down 2>/dev/null
$renzan cluster up cluster.yaml --set "users={$(id -un): {max_gpus: 1}}" >/dev/null
first=$(submit --gpus 1 -- sh -c "$wait_here")
second=$(submit --gpus 1 -- sh -c "$wait_here")
wait_for is "$first" state running
expect_explanation "$second" "user $(id -un) has a cap of 1 GPU"
$renzan cluster override "$(id -un)" --max-gpus 2 --for 1h >/dev/null
wait_for is "$second" state running
expect_explanation "$second" "it has been running since"
touch go
wait_for is "$second" state done

# What was used, by date: all of it, since nothing runs.
$renzan cluster usage --json >usage.json
$renzan cluster usage --from 2020-01-01 --json >dated.json
python3 - <<'PY'
import json
usage, dated = (json.load(open(name)) for name in ("usage.json", "dated.json"))
for groups in ("users", "queue_users"):
    all_time = sum(row["gpu_seconds"] for row in usage[groups])
    assert all_time > 1 and abs(all_time - sum(row["gpu_seconds"] for row in dated[groups])) < 1e-6, groups
PY
$renzan cluster usage --to 2020-01-01 --csv >usage.csv
[ "$(cat usage.csv)" = "queue,user,gpu_seconds,cost" ] || fail "used before 2020: $(cat usage.csv)"
expect_exit 0 "default" $renzan cluster usage --from 2020-01-01T12:00 --by queue
expect_exit 64 "must be a date such as" $renzan cluster usage --from yesterday
expect_exit 64 "must be before --to 2020-01-01" $renzan cluster usage --from 2020-01-02 --to 2020-01-01

# A job may not use more memory than it requests, unless the cluster does not enforce it. `tail` keeps
# a line in memory until the line ends.
hoard='(head -c 200M /dev/zero; sleep 3) | tail >/dev/null; echo kept'
expect_exit 137 "" submit --wait --set resources.memory=64MiB -- sh -c "$hoard"
$renzan job show "$((second + 1))" >shown.txt
grep -q "more than the 64MiB that its job requests" shown.txt || fail "$(cat shown.txt)"
$renzan cluster down 2>/dev/null
$renzan cluster up cluster.yaml --set enforce_memory=false >/dev/null
expect_exit 0 "" submit --wait --set resources.memory=64MiB -- sh -c "$hoard"
