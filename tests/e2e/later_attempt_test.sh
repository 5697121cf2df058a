# A job system that cannot reach the workers of an attempt (their node does not report any more, but
# they run on) starts the next one: the earlier saves its work and gives way, and the model is that
# of an undisturbed run.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
long=(--set training.epochs=400 --set training.log_every=100)
$renzan train small.yaml --run-dir reference "${long[@]}" 2>/dev/null

for workers in "" "--workers 2 --threads 1 --backend gloo"; do
  rm -rf run
  RENZAN_JOB_ID=team/job RENZAN_ATTEMPT=0 train_in_background "${long[@]}" $workers
  RENZAN_JOB_ID=team/job RENZAN_ATTEMPT=1 $renzan train small.yaml --run-dir run "${long[@]}" \
    >later.txt 2>&1 || fail "the later attempt: $(cat later.txt)"
  expect_end 75
  expect_log "a later attempt of this job waits to write to run"
  grep -q "waiting for another run that is writing to run: process" later.txt ||
    fail "the later attempt does not say what it waits for: $(cat later.txt)"
  grep -q "resum" later.txt || fail "the later attempt lost work: $(cat later.txt)"
  [ "$(sha256_of run)" = "$(sha256_of reference)" ] || fail "the interruption changed the model"
done

# Another job is refused. The first one is paused meanwhile, so that it cannot end.
rm -rf run
RENZAN_JOB_ID=team/job RENZAN_ATTEMPT=0 train_in_background "${long[@]}"
kill -STOP $launcher
expect_exit 73 "another run is writing to run" env RENZAN_JOB_ID=team/other RENZAN_ATTEMPT=1 \
  $renzan train small.yaml --run-dir run "${long[@]}"
kill -CONT $launcher
kill -TERM $launcher
expect_end 75
