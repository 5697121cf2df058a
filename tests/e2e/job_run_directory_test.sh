# A training that was cancelled as a job goes on: with the same command if it has a run directory of
# its own, with the command that its log names otherwise. A run goes on from the checkpoints that its
# manifest names, and never begins anew beside them.
source "$(dirname "$0")/cluster_lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
# Long enough to be cancelled on a fast machine: 440 steps took a second.
long=(--set training.epochs=160)
$renzan train small.yaml --run-dir reference "${long[@]}" 2>/dev/null
expected=$(sha256_of reference)
cat >cluster.yaml <<YAML
pools: {local: {nodes: 1, resources: {cpu: 2, memory: 8GiB}}}
YAML
$renzan cluster up cluster.yaml >/dev/null

# cancel_training JOB: once it trains; its log is then in log.txt.
cancel_training() {
  trains() { grep -q '^step' <<<"$($renzan job logs "$1" 2>/dev/null)"; }
  wait_for trains "$1"
  $renzan job cancel "$1" >/dev/null
  wait_for is "$1" state cancelled
  $renzan job logs "$1" >log.txt
  step=$(sed -n 's/.*stopped at step \([0-9]*\) of.*/\1/p' log.txt)
  [ "${step:-0}" -gt 0 ] || fail "it did not stop cleanly: $(cat log.txt)"
}
expect_resumed() {
  expect_log "resuming from $(printf 'step-%08d' "$step") at step $step"
  [ "$(sha256_of "$1")" = "$expected" ] || fail "$1 has other bits than an undisturbed run"
}

# A run directory of its own has the checkpoints, too. The same command, as another job:
id=$($renzan submit --checkpoints -- "$renzan" train small.yaml --run-dir own "${long[@]}")
cancel_training "$id"
# A job requests one CPU unless it says otherwise.
expect_log "1 thread "
cmp own/status.json "state/jobs/$id/run/status.json" || fail "the job system sees no progress"
[ -n "$(checkpoints_in own/checkpoints)" ] || fail "the run's checkpoints are not in its directory"
again=$($renzan submit --again "$id" --wait) || fail "$again: $($renzan job logs "$again")"
$renzan job logs "$again" >log.txt
expect_resumed own

# The job's run directory. The command that its log names, in the shell and as another job, and the
# original one with that directory:
for how in named job original; do
  id=$($renzan submit --checkpoints -- "$renzan" train small.yaml "${long[@]}")
  cancel_training "$id"
  run=$PWD/state/jobs/$id/run
  if [ $how != original ]; then
    named=$(sed -n 's/.*`renzan \(.*\)` resumes from step '"$step"'$/\1/p' log.txt)
    [ "$named" = "train --resume --run-dir $run" ] || fail "it names '$named': $(cat log.txt)"
    if [ $how = named ]; then
      $renzan $named >log.txt 2>&1 || fail "$(cat log.txt)"
    else
      another=$($renzan submit --wait --checkpoints -- "$renzan" $named) || fail "job $another"
      $renzan job logs "$another" >log.txt
    fi
  else
    # Neither a new run nor checkpoints elsewhere: the run has begun.
    expect_exit 78 "has its checkpoints in $PWD/state/jobs/$id/checkpoints" \
      $renzan train small.yaml --run-dir "$run" "${long[@]}" --set checkpoint.dir=elsewhere
    $renzan train small.yaml --run-dir "$run" "${long[@]}" >log.txt 2>&1 || fail "$(cat log.txt)"
    expect_log "$run keeps its checkpoints in $PWD/state/jobs/$id/checkpoints"
  fi
  expect_resumed "$run"
  grep -q "dir: $PWD/state/jobs/$id/checkpoints" "$run/manifest.json" ||
    fail "the manifest no longer names the checkpoints: $(cat "$run/manifest.json")"
done

# A run whose directory the program has named.
mkdir unnamed && cd unnamed
$renzan train ../small.yaml --set data.train.path=../data --set data.eval.path= \
  --set training.epochs=4000 >log.txt 2>&1 &
training=$!
wait_for grep -q '^step' log.txt
kill -TERM $training
status=0
wait $training || status=$?
[ $status = 75 ] || fail "exit $status: $(cat log.txt)"
run=$(echo runs/*)
expect_log "the run is in $run"
expect_log "\`renzan train --resume --run-dir $run\` resumes from step"
cd ..

# A new run has nothing to say about checkpoints. One whose checkpoints were removed says that it
# begins again.
$renzan train small.yaml --run-dir new --set checkpoint.dir=kept >log.txt 2>&1
! grep -q "kept its checkpoints" log.txt || fail "a new run: $(cat log.txt)"
rm -r kept new/model
$renzan train small.yaml --run-dir new >log.txt 2>&1
expect_log "new kept its checkpoints in kept, which no longer exists: it begins again"
