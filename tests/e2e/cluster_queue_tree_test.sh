# Queues with a parent, in the daemon: what is idle is lent to the parent's other queues before anybody
# else, a job within its parent's quota gets it back from strangers, and its owner from all.
source "$(dirname "$0")/cluster_lib.sh" "$@"
cat >cluster.yaml <<'YAML'
pools:
  own: {nodes: 1, resources: {cpu: 16, memory: 4GiB, gpu: 8}}
queues:
  research: {}
  vision:  {parent: research, guaranteed: {gpu: 4}}
  ranking: {parent: research, guaranteed: {gpu: 2}}
  ads:     {guaranteed: {gpu: 2}}
scheduling: {min_between_resizes: 1s}
simulated: true
YAML
$renzan cluster up cluster.yaml >/dev/null
# job QUEUE GPUS: of one worker that saves when it is stopped.
job() {
  $renzan submit --queue "$1" --gpus "$2" --cpus 0.1 --checkpoints -- \
    sh -c 'trap "exit 75" TERM; while :; do sleep 0.05; done'
}
# running QUEUE: the GPUs of its running jobs.
running() {
  $renzan jobs --queue "$1" --state running --json | python3 -c 'import json, sys
print(sum(job["workers"] * job["resources"]["gpu"] for job in json.load(sys.stdin)["jobs"]))'
}
# use VISION RANKING ADS: what they use.
use() { [ "$(running vision) $(running ranking) $(running ads)" = "$1 $2 $3" ]; }

expect_exit 77 "takes no jobs itself: use ranking or vision" job research 1
for _ in 1 2 3 4; do job ads 1 >/dev/null; done
own=$(job vision 4)
wait_for use 4 0 4

echo "== What ranking does not use goes to vision, its sibling, before it goes to ads"
more=$(job vision 2)
wait_for use 6 0 2
for id in 1 2 3 4; do
  is $id state running || expect_explanation $id "queue"
done

echo "== Nobody outside reclaims what the parent's queues use within its guarantee"
late=$(job ads 1)
expect_explanation "$late" "queue"
use 6 0 2 || fail "vision $(running vision), ranking $(running ranking), ads $(running ads)"

echo "== Ranking gets its own back, from vision, which has borrowed it"
mine=$(job ranking 2)
wait_for use 4 2 2
is "$own" state running || fail "the job within vision's own quota was stopped"
expect_explanation "$more" "queue"
$renzan cluster usage >usage.txt || fail "no usage"
grep -qE '^ranking .* vision ' usage.txt || { cat usage.txt >&2; fail "usage shows no loan to the sibling"; }

echo "== When ads ends, vision borrows what it leaves"
for id in 1 2 3 4 "$late"; do $renzan job cancel $id >/dev/null; done
wait_for use 6 2 0
is "$mine" attempts 1 || fail "the job of ranking was disturbed"
