# Signals that arrive in the middle of a training step are handled safely.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 20000 --output data >/dev/null
cat >large.yaml <<YAML
data: {train: {path: data}}
training: {batch_size: 2048, epochs: 1000000}
checkpoint: {every: "0"}
YAML
for attempt in 1 2 3; do
  rm -rf run
  $renzan train large.yaml --run-dir run >log.txt 2>&1 &
  launcher=$!
  expect_running
  for _ in 1 2 3 4 5; do
    kill -USR1 $launcher
    sleep 0.1
  done
  kill -TERM $launcher
  status=0
  wait $launcher || status=$?
  launcher=""
  [ $status -eq 75 ] || { cat log.txt; fail "exit $status instead of 75"; }
  grep -q "^checkpoint step-" log.txt || { cat log.txt; fail "SIGUSR1 wrote no checkpoint"; }
done
