# A PyTorch program as a job of the local cluster: it shrinks, is stopped for others, and loses
# nodes with and without notice. It ends with the bits of an undisturbed run on one worker. Runs one
# of the examples: pytorch_day_test.sh RENZAN [digits|shakespeare|ranking] (default: digits).
source "$(dirname "$0")/cluster_lib.sh" "$@"
export PYTHONPATH=$source_root/python RENZAN_LIBRARY=$(dirname "$renzan")/../lib/librenzan.so
export PYTHONDONTWRITEBYTECODE=1
python=${PYTHON:-python3}
$python -c 'import torch, sklearn' 2>/dev/null || skip "needs python3-torch and python3-sklearn"
example=${2:-digits}
case $example in
digits) options="--epochs 40" ;;
shakespeare)
  options="$(readlink -f "$shared_data")/tinyshakespeare/input.txt.gz --steps 150"
  [ -e "${options% --*}" ] || skip "$shared_data is absent"
  ;;
ranking)
  $renzan data synth --format dataset --seed 7 --rows 40000 --output clicks >/dev/null
  options="$work/clicks --epochs 8"
  ;;
esac
program="$source_root/examples/pytorch/$example.py $options"

step() { python3 -c 'import json
try: print(json.load(open("state/jobs/1/run/status.json"))["step"])
except (OSError, ValueError, KeyError): print(0)'; }
has_passed() { [ "$(step)" -gt "$1" ] || is 1 state done; }
# Waits until it has trained so many steps since the last checkpoint or resumption.
moves_on() { local from=$(step); wait_for has_passed $((from + ${1:-2})); ! is 1 state done ||
  fail "job 1 ended before the test was done"; }
digest() { grep -oE 'sha256 [0-9a-f]{64}' "$1"; }

$python $program >undisturbed.txt 2>/dev/null

cat >cluster.yaml <<'YAML'
pools:
  own: {nodes: 2, resources: {cpu: 4, memory: 4GiB, gpu: 2}}
  spot: {nodes: 1, resources: {cpu: 4, memory: 4GiB, gpu: 2}, spot: true}
scheduling: {min_between_resizes: 1s}
simulated: true
YAML
$renzan cluster up cluster.yaml >/dev/null
$renzan submit --name "$example" --replicas 2..4 --gpus 1 --cpus 0.5 --memory 1GiB --checkpoints \
  --set grace=300s --set checkpoint.on_request=true -- env PYTHONPATH="$PYTHONPATH" RENZAN_LIBRARY="$RENZAN_LIBRARY" $python $program \
  >/dev/null

echo "== It trains on four workers"
wait_for is 1 workers 4
moves_on

echo "== A job of a higher priority needs the room: it goes on with fewer"
cat >serve.sh <<'SH'
until [ -e "$1" ]; do sleep 0.05; done
SH
urgent=$($renzan submit --priority 10 --gpus 1 --cpus 0.5 --replicas 4 -- sh "$work/serve.sh" \
  "$work/over")
wait_for is "$urgent" state running
wait_for is 1 workers 2
moves_on

echo "== Another one needs all of it: it saves and waits, and goes on at that step"
second=$($renzan submit --priority 10 --gpus 1 --cpus 0.5 --replicas 2 -- sh "$work/serve.sh" \
  "$work/over")
wait_for is "$second" state running
wait_for is 1 state pending
stopped_at=$(step)
grep -q '"stopped"' state/jobs/1/run/status.json || fail "it has not stopped cleanly"
touch over
wait_for is 1 state running
wait_for has_passed "$stopped_at"
$renzan job logs 1 >log.txt
expect_log "resumed from"
expect_log "step-$(printf %08d "$stopped_at")"

echo "== A spot node announces its end, another node fails"
wait_for is 1 workers 4
$renzan nodes drain spot-0 --notice 300s >/dev/null
moves_on
ask() { $renzan job checkpoint 1 >/dev/null 2>&1; }
wait_for ask
$renzan nodes fail own-1 >/dev/null
wait_for is 1 workers 2
moves_on 1
is 1 failures 0 || fail "a lost node counts as a failure of the job"

echo "== It ends as if undisturbed"
wait_for is 1 state done
$renzan job logs 1 >log.txt
[ "$(digest log.txt)" = "$(digest undisturbed.txt)" ] ||
  { cat undisturbed.txt log.txt >&2; fail "the model differs"; }
