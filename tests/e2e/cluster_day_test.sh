# A day of one machine: two queues, and a training run that is shrunk, stopped, and loses nodes with
# and without notice. It ends with the same model as an undisturbed run.
source "$(dirname "$0")/cluster_lib.sh" "$@"
export PATH=$(dirname "$renzan"):$PATH

steps_of() { python3 -c 'import json, sys
try: print(json.load(open(sys.argv[1]))["step"])
except (OSError, ValueError, KeyError): print(0)' "state/jobs/$1/run/status.json"; }
has_moved_on() { [ "$(steps_of 1)" -gt "$1" ]; }

$renzan data synth --format dataset --seed 7 --rows 8000 --output data >/dev/null
cat >train.yaml <<YAML
seed: 3
data: {train: {path: $work/data, rows: [0, 7000]}, eval: {path: $work/data, rows: [7000, 8000]}}
model: {embedding_dim: 8, bottom_mlp: [16], top_mlp: [16, 8], cross_layers: 2, cross_rank: 4}
training: {batch_size: 256, epochs: 100, log_every: 4}
optimizer: {dense: {learning_rate: 0.05}, sparse: {learning_rate: 0.05}}
YAML
$renzan train train.yaml --run-dir undisturbed >/dev/null
cat >cluster.yaml <<'YAML'
pools:
  own: {nodes: 2, resources: {cpu: 4, memory: 2GiB, gpu: 2}}
  spot: {nodes: 2, resources: {cpu: 4, memory: 2GiB, gpu: 2}, spot: true}
queues:
  research: {guaranteed: {gpu: 2}}
  production: {guaranteed: {gpu: 6}}
scheduling: {min_between_resizes: 1s}
simulated: true
YAML
cat >research.yaml <<YAML
name: research
queue: research
replicas: 2..4
resources: {cpu: 0.5, memory: 256MiB, gpu: 1}
checkpoint: {on_stop: true, on_request: true}
grace: 60s
command: [renzan, train, $work/train.yaml]
YAML
# serve WORKERS FILE: a gang of the production queue that runs until FILE exists.
cat >serve.sh <<'SH'
echo "worker $RANK of $WORLD_SIZE on $RENZAN_NODE with GPU $CUDA_VISIBLE_DEVICES"
until [ -e "$1" ]; do sleep 0.05; done
SH
serve() {
  $renzan submit --queue production --priority 10 --gpus 1 --cpus 0.5 --replicas "$1" -- \
    sh "$work/serve.sh" "$work/$2"
}

$renzan cluster up cluster.yaml >/dev/null

echo "== The queue research borrows what production does not use"
[ "$($renzan submit research.yaml)" = 1 ]
wait_for is 1 workers 4
wait_for has_moved_on 10

echo "== A gang of production reclaims its quota: the run shrinks"
gang=$(serve 6 over.1)
# The run may have shrunk already.
explain_gang='waiting for job 1 to save and stop|about to be stopped for it'
explain_gang+='|starts in the next scheduling cycle|has been running'
wait_for is_explained "$gang"
grep -qE "$explain_gang" why.txt || { cat why.txt >&2; fail "job $gang: not '$explain_gang'"; }
wait_for is "$gang" state running
wait_for is 1 workers 2
step=$(steps_of 1)
wait_for has_moved_on "$step"

echo "== Guaranteed quota is not reclaimed: a second gang waits, and explain says why"
second=$(serve 2 over.2)
expect_explanation "$second" "needs 2 workers at the same time, each with 1 GPU"
expect_explanation "$second" "if job 1 of queue research ended (2 GPUs)"

echo "== The gang ends, the second one runs, the run grows again"
touch over.1
wait_for is "$gang" exit_code 0
wait_for is "$second" state running
wait_for is 1 workers 4
[ "$($renzan job logs "$gang" --worker 5 | sed 's/ on.*//')" = "worker 5 of 6" ]

echo "== A grand challenge needs the whole cluster: the run stops with a checkpoint and resumes"
touch over.2
wait_for is "$second" exit_code 0
wait_for has_moved_on "$(steps_of 1)"
cat >challenge.yaml <<YAML
name: challenge
queue: production
replicas: 8
resources: {cpu: 0.5, gpu: 1}
command: [sh, $work/serve.sh, $work/over.3]
YAML
$renzan cluster challenge challenge.yaml --plan-only >plan.txt
grep -q "1" plan.txt
$renzan cluster challenge challenge.yaml >challenge.txt
challenge=$(grep -oE '[0-9]+' challenge.txt | tail -1)
wait_for is "$challenge" state running
is 1 state pending || fail "job 1 is $(job_field 1 state)"
expect_explanation 1 "needs 2 workers at the same time"
stopped_at=$(steps_of 1)
grep -q '"stopped"' state/jobs/1/run/status.json || fail "the run did not stop cleanly"
touch over.3
wait_for is "$challenge" exit_code 0
wait_for is 1 state running
$renzan job logs 1 >log.txt
wait_for has_moved_on "$stopped_at"
$renzan job logs 1 >log.txt
expect_log "resuming from step-$(printf %08d "$stopped_at") at step $stopped_at"

echo "== A spot node goes away with notice, another without"
wait_for is 1 workers 4
$renzan nodes drain spot-0 --notice 60s >/dev/null
not_on() { ! $renzan nodes --json | python3 -c 'import json, sys
sys.exit(not any(n["name"] == sys.argv[1] and n["jobs"] for n in json.load(sys.stdin)["nodes"]))' "$1"; }
wait_for not_on spot-0
wait_for is 1 state running
wait_for has_moved_on "$(steps_of 1)"
# Retried, because it may be resizing.
ask() { $renzan job checkpoint 1 >/dev/null 2>&1; }
wait_for ask
$renzan nodes fail spot-1 >/dev/null
wait_for not_on spot-1
wait_for is 1 state running
wait_for has_moved_on "$(steps_of 1)"
for time in checkpoint_ms restart_ms; do
  [ "$(job_field 1 $time)" -gt 0 ] || fail "$time of job 1 is $(job_field 1 $time)"
done
$renzan cluster status >status.txt
grep -qE '^spot +[0-9] +0 +[0-9.]+ +2 ' status.txt || { cat status.txt >&2; fail "not two interruptions"; }
is 1 failures 0 || fail "a node failure counted as a failure of the job"

echo "== It ends with the same bits as the undisturbed run"
wait_for is 1 state done  # four workers over TCP, on two busy cores
[ "$(sha256_of state/jobs/1/run)" = "$(sha256_of undisturbed)" ] || fail "the model differs"
$renzan cluster usage >usage.txt
grep -q research usage.txt
