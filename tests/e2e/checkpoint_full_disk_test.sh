# A full disk under the checkpoints does not end training: it is logged, the last good checkpoint
# can be resumed from, and the model is that of an uninterrupted run.
source "$(dirname "$0")/lib.sh" "$@"
[ "$(id -u)" -eq 0 ] || skip "needs root to mount a small file system"
# Room for a full checkpoint (4.3 MB) and an increment (2.3 MB), but not for two increments.
mkdir small
mount -t tmpfs -o size=7m tmpfs small 2>/dev/null || skip "cannot mount a tmpfs here"
trap '[ -z "$launcher" ] || kill -KILL "$launcher" || true; umount "$work/small"; rm -rf "$work"' EXIT
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
long=(--set training.epochs=40)
$renzan train small.yaml --run-dir reference "${long[@]}" 2>/dev/null
expected=$(sha256_of reference)

# expect_good: the checkpoints are valid, and the run without its model resumes from the newest.
expect_good() {
  local newest
  newest=$(checkpoints_in small/checkpoints | head -1)
  expect_exit 0 "valid: small/checkpoints/$newest" $renzan checkpoint verify small/checkpoints
  [ -z "$(find small/checkpoints -name '*.partial')" ] || fail "left: $(ls -A small/checkpoints)"
  rm -r run/model
  expect_exit 0 "resuming from $newest" $renzan train small.yaml --run-dir run "${long[@]}" \
    --set checkpoint.dir=small/checkpoints
  [ "$(sha256_of run)" = "$expected" ] || fail "different bits after a resume"
}

for workers in 1 2; do
  rm -rf run small/checkpoints
  expect_exit 0 "could not be written" $renzan train small.yaml --run-dir run "${long[@]}" \
    --workers $workers --threads 1 --set checkpoint.every_steps=20 \
    --set checkpoint.dir=small/checkpoints
  grep -q "No space left on device; the last checkpoint is at step [0-9]" out.txt || fail "$(cat out.txt)"
  [ "$(sha256_of run)" = "$expected" ] || fail "different bits with $workers workers"
  [ "$(status_of state)" = done ] || fail "status.json says $(status_of state)"
  expect_good
done

# The same directory from the launch contract's variable. On SIGTERM the run stops and logs from
# which step it will resume.
rm -rf run small/checkpoints
export RENZAN_CHECKPOINT_DIR=$PWD/small/checkpoints
train_in_background --workers 2 --threads 1 --backend gloo --set training.epochs=1000000 \
  --set checkpoint.every_steps=20
wait_for grep -q "could not be written" log.txt
kill -TERM $launcher
expect_end 75
expect_log "the same command resumes from step"
newest=$(checkpoints_in small/checkpoints | head -1)
[ "$(status_of last_checkpoint)" = "checkpoint $((10#${newest#step-}))" ] ||
  fail "newest is $newest, but: $(cat run/status.json)"
expect_exit 0 "valid: small/checkpoints/$newest" $renzan checkpoint verify small/checkpoints
[ -z "$(checkpoints_in run/checkpoints 2>/dev/null || true)" ] || fail "checkpoints in another directory"
