# A cluster with worker classes, and `submit --again`.
source "$(dirname "$0")/cluster_lib.sh" "$@"
cat >cluster.yaml <<'YAML'
pools: {own: {nodes: 2, resources: {cpu: 8, memory: 8GiB, gpu: 2}}}
simulated: true
worker_classes: {half: {cpu: 4, memory: 4GiB, gpu: 1}, whole: {cpu: 8, memory: 8GiB, gpu: 2}}
YAML
$renzan cluster up cluster.yaml >/dev/null

echo "== Worker requests are rounded up to a class"
cat >program <<'SH'
#!/bin/sh
echo "first $GREETING $CUDA_VISIBLE_DEVICES"
SH
chmod +x program
expect_exit 0 "" $renzan submit --wait --memory 1GiB --set 'environment={GREETING: hello}' -- "$work/program"
[ "$(job_field 1 resources)" = "{'cpu': 4.0, 'memory_mib': 4096, 'gpu': 1}" ] ||
  fail "$(job_field 1 resources)"
expect_exit 78 "half (cpu: 4, memory: 4GiB, gpu: 1)" $renzan submit --gpus 3 -- true
printf 'command: [sleep, 1]\nresources: {gpu: 2}\n' >job.yaml
expect_exit 0 "job.yaml" $renzan cluster what-if --submit job.yaml
printf 'command: [sleep, 1]\nresources: {gpu: 3}\n' >job.yaml
expect_exit 78 "whole (cpu: 8" $renzan cluster what-if --submit job.yaml

echo "== submit --again, from another directory"
mkdir elsewhere
cd elsewhere
expect_exit 0 "" $renzan submit --again 1 --wait
grep -q "has changed" out.txt && fail "its program has not changed"
cd ..
[ "$($renzan job logs 2)" = "first hello 0" ] || fail "$($renzan job logs 2)"
[ "$(job_field 1 spec)" = "$(job_field 2 spec)" ] || fail "the specification differs"
sed -i 's/first/second/' program
expect_exit 0 "has changed since job 1" $renzan submit --again 1 --wait --priority 3
[ "$($renzan job logs 3)" = "second hello 0" ] || fail "$($renzan job logs 3)"
[ "$(job_field 3 priority)" = 3 ] || fail "its priority is $(job_field 3 priority)"
expect_exit 66 "no job 99" $renzan submit --again 99
expect_exit 64 "--again" $renzan submit --again 1 -- true
