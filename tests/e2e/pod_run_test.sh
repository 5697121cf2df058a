#!/usr/bin/env bash
# renzan pod-run: command lines, exit codes, process 1 of a container, and a training run that is
# asked for a checkpoint and stopped as Kubernetes does it.
source "$(dirname "$0")/lib.sh"
unset RANK WORLD_SIZE MASTER_ADDR RENZAN_RUN_DIR RENZAN_GRACE_SECONDS
export RENZAN_POD_INFO=$work/pod RENZAN_TERMINATION_LOG=$work/words
touch words
pod_run() { $renzan pod-run "$@"; }

# Command lines.
expect_exit 64 "no command: it goes after --" pod_run
expect_exit 64 "no command: it goes after --" pod_run --
expect_exit 64 "renzan pod-run -- echo hello" pod_run echo hello
expect_exit 64 "did you mean '--grace'?" pod_run --grac 3 -- true
expect_exit 64 "--grace" pod_run --grace=-1 -- true
expect_exit 64 "--wait-for-master" pod_run --wait-for-master soon -- true
expect_exit 127 "error: pod-run: program 'no_such' is not in PATH" pod_run -- no_such
expect_exit 126 "error: pod-run: cannot execute './words'" pod_run -- ./words
grep -qF '"exit_code":126,"message":"cannot execute' words || fail "no last words: $(cat words)"
expect_exit 64 "RANK" env RANK=first $renzan pod-run -- true
expect_exit 69 "does not resolve after 0.1 s" env WORLD_SIZE=2 MASTER_ADDR=no.such.invalid \
  $renzan pod-run --wait-for-master 0.1 -- true
expect_exit 3 "words" pod_run -- sh -c 'echo words; exit 3'
expect_exit 137 "words" pod_run -- sh -c 'echo words; kill -KILL $$'
grep -qF '"signal":"SIGKILL"' words || fail "no signal: $(cat words)"
# The command's words are not ours, and stay as they are.
pod_run --grace 7 -- printf '<%s>' '[a,b]' '' -- --grace 9 '{}' pod-run >printed.txt
[ "$(cat printed.txt)" = '<[a,b]><><--><--grace><9><{}><pod-run>' ] || fail "$(cat printed.txt)"
[ "$(pod_run --grace 7 -- sh -c 'echo $RENZAN_GRACE_SECONDS')" = 7 ] || fail "--grace"
# Both outputs are the command's alone.
pod_run -- sh -c 'echo out; echo err >&2' >out.txt 2>err.txt
[ "$(cat out.txt) $(cat err.txt)" = "out err" ] || fail "outputs: $(cat out.txt err.txt)"

# As process 1, for which the kernel ignores signals without a handler.
if unshare --pid --fork --mount-proc true 2>/dev/null; then
  cat >orphans.sh <<'SH'
trap 'cat $RENZAN_RUN_DIR/stop.json >heard; exit 75' TERM
[ $PPID = 1 ] || exit 1
sh -c 'sleep 0.01 & echo $! >orphan'
while [ -e /proc/$(cat orphan) ]; do sleep 0.01; done # until it is reaped
echo up >ready
while :; do sleep 0.01; done
SH
  unshare --pid --fork --mount-proc --kill-child $renzan pod-run --grace 600 -- sh orphans.sh \
    >log.txt 2>&1 &
  launcher=$!
  wait_for [ -e ready ]
  kill -TERM $(descendants $launcher | head -1)
  expect_end 75
  grep -q '"grace_seconds": 600.000' heard || fail "no notice: $(cat heard)"
else
  echo "no permission for unshare: process 1 is not tried"
fi

# Training: an annotation requests a checkpoint, SIGTERM the last one.
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
mkdir -p pod/..1 run
echo monday >pod/..1/checkpoint-request
ln -s ..1 pod/..data
ln -s ..data/checkpoint-request pod/checkpoint-request
RENZAN_RUN_DIR=$work/run $renzan pod-run --grace 600 -- \
  $renzan train small.yaml --set training.epochs=1000000 --set checkpoint.every="\"0\"" --set checkpoint.dir=$work/saved \
  >log.txt 2>&1 &
launcher=$!
expect_trained
[ ! -e saved ] || [ -z "$(checkpoints_in saved)" ] || fail "a checkpoint that nobody asked for"
mkdir pod/..2
echo tuesday >pod/..2/checkpoint-request
ln -s ..2 pod/..data_tmp
mv -T pod/..data_tmp pod/..data
has_checkpoint() { [ "$(status_of last_checkpoint)" != None ]; }
wait_for has_checkpoint
kill -TERM $launcher
expect_end 75
grep -qE '^\{"exit_code":75,"message":"stopped at step [0-9]+ of [0-9]+"\}$' words ||
  fail "last words: $(cat words)"
grep -q '"grace_seconds": 600.000' run/stop.json || fail "no notice"
