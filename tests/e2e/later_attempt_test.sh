# A job system that cannot reach the workers of an attempt (their node stopped reporting, but they
# are still running) starts the next attempt: the earlier one saves its work and gives way, and the
# model is that of an undisturbed run.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
long=(--set training.epochs=100)
$renzan train small.yaml --run-dir reference "${long[@]}" 2>/dev/null

# first_attempt OPTION...: trains, then is paused, so that it does not end before the others start.
first_attempt() {
  rm -rf run
  RENZAN_JOB_ID=team/job RENZAN_ATTEMPT=0 train_in_background "${long[@]}" "$@"
  paused="$launcher $(workers_of $launcher)"
  kill -STOP $paused
}

for backend in local $(several_worker_backends); do
  options="--workers 2 --threads 1 --backend $backend"
  [ $backend != local ] || options=""
  first_attempt $options
  RENZAN_JOB_ID=team/job RENZAN_ATTEMPT=1 $renzan train small.yaml --run-dir run "${long[@]}" \
    >later.txt 2>&1 &
  later=$!
  wait_for grep -q "waiting for another run that is writing to run: process" later.txt
  # Longer than the interval between looks at the directory, so that a look is due.
  sleep 3
  kill -CONT $paused
  expect_end 75
  expect_log "a later attempt of this job waits to write to run"
  wait $later || fail "the later attempt: $(cat later.txt)"
  grep -q "resuming from" later.txt || fail "the later attempt lost work: $(cat later.txt)"
  [ "$(sha256_of run)" = "$(sha256_of reference)" ] || fail "the interruption changed the model"
done

# Another job is refused.
first_attempt
expect_exit 73 "another run is writing to run" env RENZAN_JOB_ID=team/other RENZAN_ATTEMPT=1 \
  $renzan train small.yaml --run-dir run "${long[@]}"
kill -CONT $paused
kill -TERM $launcher
expect_end 75
