# Ctrl-C or SIGTERM to the launcher ends the run at once: one line says so, nobody is left behind.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data

# A shell starts background jobs with SIGINT ignored; this starts one as a terminal would.
with_default_signals() {
  exec python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$@"
}

# interrupt BACKEND SIGNAL EXIT_CODE LINE
interrupt() {
  local backend=$1 signal=$2 code=$3 line=$4 everyone status=0
  rm -rf run
  with_default_signals "$renzan" train small.yaml --run-dir run --workers 2 --threads 1 \
    --backend "$backend" --set training.epochs=1000000 >log.txt 2>&1 &
  launcher=$!
  expect_running
  everyone=$(descendants $launcher)
  [ "$(wc -w <<<"$everyone")" -ge 2 ] || fail "$backend: no two workers"
  kill "-$signal" $launcher
  SECONDS=0
  wait $launcher || status=$?
  launcher=""
  [ $SECONDS -le 10 ] || fail "$backend, $signal: took $SECONDS s to end"
  [ $status -eq "$code" ] || { cat log.txt; fail "$backend, $signal: exit $status, not $code"; }
  [ "$(grep -c "stopped by" log.txt)" -eq 1 ] && grep -qxF "$line" log.txt ||
    { cat log.txt; fail "$backend, $signal: not one line '$line'"; }
  ! grep -q "error:" log.txt || { cat log.txt; fail "$backend, $signal: reported as an accident"; }
  expect_nobody_left $everyone
}

for backend in $(several_worker_backends); do
  interrupt $backend INT 130 "stopped by signal 2 (Interrupt)"
  interrupt $backend TERM 75 "stopped by signal 15 (Terminated)"
done
