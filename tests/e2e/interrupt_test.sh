# Ctrl-C and SIGTERM to the launcher end a run with a last checkpoint; a second Ctrl-C ends it
# immediately. The log says what happened, and no process is left behind.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data

# begin BACKEND OPTION...
begin() {
  rm -rf run
  with_default_signals "$renzan" train small.yaml --run-dir run --workers 2 --threads 1 \
    --backend "$@" --set training.epochs=1000000 >log.txt 2>&1 &
  launcher=$!
  expect_running
  everyone=$(descendants $launcher)
  [ "$(wc -w <<<"$everyone")" -ge 2 ] || fail "$1: no two workers"
}

for backend in $(several_worker_backends); do
  for signal in INT TERM; do
    begin "$backend"
    kill "-$signal" $launcher
    expect_end 75
    [ "$(grep -c "stop requested: writing a last checkpoint at step" log.txt)" -eq 1 ] ||
      { cat log.txt; fail "$backend, $signal: does not log the stop request once"; }
    expect_log "the same command resumes from step"
    ! grep -q "error:" log.txt || { cat log.txt; fail "$backend, $signal: reported as an error"; }
    expect_no_process_left $everyone
  done

  # A checkpoint that takes a moment.
  begin "$backend" --set model.embedding_dim=1024
  kill -INT $launcher
  wait_for grep -q "stop requested" log.txt
  kill -INT $launcher
  expect_end 130
  expect_log "stopped by signal 2 (Interrupt)"
  expect_no_process_left $everyone
done
