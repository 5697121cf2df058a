# A worker that dies ends the run within seconds, with an error that names it and nobody left behind.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data

for backend in $(several_worker_backends); do
  rm -rf run
  $renzan train small.yaml --run-dir run --workers 3 --threads 1 --backend $backend \
    --set training.epochs=1000000 >log.txt 2>&1 &
  launcher=$!
  expect_running
  everyone=$(descendants $launcher)
  workers=()
  for pid in $everyone; do
    [ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$renzan")" ] && workers+=("$pid")
  done
  [ ${#workers[@]} -eq 3 ] || fail "$backend: ${#workers[@]} workers instead of 3"
  kill -KILL "${workers[1]}"
  SECONDS=0
  status=0
  wait $launcher || status=$?
  launcher=""
  [ $SECONDS -le 20 ] || fail "$backend: took $SECONDS s to notice"
  [ $status -eq 69 ] || { cat log.txt; fail "$backend: exit $status instead of 69"; }
  grep -Eq "worker [0-9]|rank [0-9]" log.txt || { cat log.txt; fail "$backend: names nobody"; }
  grep -Eqi "signal 9|killed" log.txt || { cat log.txt; fail "$backend: does not say why"; }
  expect_nobody_left $everyone
done
