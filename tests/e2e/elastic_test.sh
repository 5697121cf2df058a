# A worker is killed: the run resumes from its last checkpoint with the remaining workers, or with
# as many as before, and ends with the bits of an uninterrupted run.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
long=(--set training.epochs=25 --set checkpoint.every_steps=10)
$renzan train small.yaml --run-dir reference "${long[@]}" 2>/dev/null

has_checkpoint() { [ -n "$(checkpoints_in run/checkpoints)" ]; }

# kill_one BACKEND MIN_WORKERS EXPECTED_LINE
kill_one() {
  local backend=$1 workers
  rm -rf run
  train_in_background --workers 4 --threads 1 --backend $backend "${long[@]}" \
    --set elastic.min=$2 --set elastic.backoff_seconds=0.1
  wait_for has_checkpoint
  workers=($(workers_of $launcher))
  [ ${#workers[@]} -eq 4 ] || fail "$backend: ${#workers[@]} workers instead of 4"
  kill -KILL "${workers[2]}"
  expect_end 0
  expect_log "was killed by signal 9 (Killed): restarting with $3 in 0.1 s (restart 1 of 3)"
  expect_log "resuming from step-"
  [ "$(sha256_of run)" = "$(sha256_of reference)" ] || fail "$backend: different bits"
}

for backend in $(several_worker_backends); do
  kill_one $backend 1 "3 workers"
done
kill_one gloo 4 "4 workers"

# The lost worker comes back, and nothing is lost by that.
rm -rf run
longer=(--set training.epochs=80 --set checkpoint.every_steps=10)
train_in_background --workers 3 --threads 1 --backend gloo "${longer[@]}" \
  --set elastic.min=1 --set elastic.backoff_seconds=0.1 --set elastic.grow_after=0.3s
wait_for has_checkpoint
kill -KILL $(workers_of $launcher | tail -1)
expect_end 0
expect_log "growing from 2 to 3 workers"
$renzan train small.yaml --run-dir reference-longer "${longer[@]}" 2>/dev/null
[ "$(sha256_of run)" = "$(sha256_of reference-longer)" ] || fail "growing: different bits"

# When all restarts are used up the run fails.
rm -rf run
train_in_background --workers 2 --threads 1 --backend gloo --set training.epochs=1000000 \
  --set elastic.max_restarts=1 --set elastic.backoff_seconds=0.1
kill -KILL $(workers_of $launcher | tail -1)
wait_for grep -q "restarting with 2 workers" log.txt
rm -f run/status.json
expect_running
kill -KILL $(workers_of $launcher | tail -1)
expect_end 69
expect_log "no restart is left after 1 restart:"
