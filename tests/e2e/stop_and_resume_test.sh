# The launch contract: SIGTERM to any worker stops all workers at the same step with a last
# checkpoint and exit status 75. The same command resumes from there with any placement and ends
# with the bits of an uninterrupted run. SIGUSR1 writes a checkpoint, and training continues.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
long=(--set training.epochs=40)
$renzan train small.yaml --run-dir reference "${long[@]}" 2>/dev/null
expected=$(sha256_of reference)

stopped_step() { sed -n 's/.*stopped at step \([0-9]*\) of.*/\1/p' log.txt; }

# expect_stopped: the run stopped without losing steps, and status.json says so.
expect_stopped() {
  local step
  expect_end 75
  step=$(stopped_step)
  [ -n "$step" ] && [ "$step" -gt 0 ] || { cat log.txt >&2; fail "does not say where it stopped"; }
  [ "$(checkpoints_in run/checkpoints | head -1)" = "$(printf 'step-%08d' "$step")" ] ||
    { cat log.txt >&2; fail "stopped at step $step, but there are $(checkpoints_in run/checkpoints)"; }
  [ "$(status_of state)" = stopped ] || fail "status.json says $(status_of state)"
  [ "$(status_of step)" = "$step" ] || fail "status.json says step $(status_of step), not $step"
  [ "$(status_of last_checkpoint)" = "checkpoint $step" ] || fail "$(cat run/status.json)"
  [ ! -e run/model ] || fail "a stopped run left a model"
}

# resume OPTION...: resumes from where the run stopped and trains to the end.
resume() {
  local step
  step=$(stopped_step)
  $renzan train small.yaml --run-dir run "${long[@]}" "$@" >log.txt 2>&1 ||
    { cat log.txt >&2; fail "cannot resume with $*"; }
  expect_log "resuming from $(printf 'step-%08d' "$step") at step $step"
  [ "$(sha256_of run)" = "$expected" ] || fail "different bits after resuming with $*"
  [ "$(status_of state)" = done ] || fail "status.json says $(status_of state)"
}

for backend in $(several_worker_backends); do
  # The last of three workers; the second signal may arrive while the checkpoint is being written.
  rm -rf run
  train_in_background --workers 3 --threads 1 --backend $backend "${long[@]}"
  everyone=$(descendants $launcher)
  target=$(workers_of $launcher | tail -1)
  kill -TERM "$target"
  wait_for grep -q "stop requested" log.txt
  kill -TERM "$target" 2>/dev/null || true
  expect_stopped
  expect_no_process_left $everyone
  case $backend in
    gloo) resume --workers 1 --threads 2 ;;
    mpi) resume --workers 4 --threads 1 --backend gloo ;;
  esac

  # The launcher, twice while the last checkpoint is being written.
  rm -rf run
  train_in_background --workers 2 --threads 1 --backend $backend "${long[@]}"
  kill -TERM $launcher
  sleep 0.05
  kill -TERM $launcher 2>/dev/null || true
  expect_stopped
  resume --workers 3 --threads 1 --backend $backend
done

# A single worker has no separate launcher. A stopped run may be stopped again.
rm -rf run
train_in_background --workers 1 --threads 1 "${long[@]}"
kill -TERM $launcher
expect_stopped
first=$(stopped_step)
train_in_background --workers 2 --threads 1 --backend gloo "${long[@]}"
kill -TERM $launcher
expect_stopped
[ "$(stopped_step)" -ge "$first" ] || fail "the second attempt went back"
resume --workers 1

# While the last checkpoint is being written, the state is "stopping".
rm -rf run
train_in_background --workers 2 --threads 1 --backend gloo "${long[@]}" \
  --set model.embedding_dim=512 --set training.epochs=1000000
kill -TERM $launcher
is_stopping() { [ "$(status_of state)" = stopping ]; }
wait_for is_stopping
expect_stopped

# SIGUSR1 to one worker: a checkpoint, and training continues.
for backend in $(several_worker_backends); do
  rm -rf run
  train_in_background --workers 2 --threads 1 --backend $backend "${long[@]}" \
    --set training.epochs=1000000
  kill -USR1 $(workers_of $launcher | tail -1)
  wait_for grep -q "checkpoint step-" log.txt
  [ "$(checkpoints_in run/checkpoints | wc -l)" -eq 1 ] || fail "not one checkpoint"
  step=$(status_of step)
  has_continued() { [ "$(status_of step)" -gt "$step" ]; }
  wait_for has_continued
  [ "$(status_of state)" = running ] || fail "SIGUSR1 left $(status_of state)"
  kill -TERM $launcher
  expect_stopped
done

# mpirun without --workers: one rank gets the signal.
command -v mpirun >/dev/null || skip "no mpirun; the rest passed"
rm -rf run
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 2 --oversubscribe \
  --bind-to none $renzan train small.yaml --run-dir run "${long[@]}" >log.txt 2>&1 &
launcher=$!
expect_trained
kill -TERM $(workers_of $launcher | tail -1)
expect_stopped
resume --workers 2 --threads 1 --backend gloo
