# A worker that dies ends the run within seconds, with an error that names it and nobody left behind.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data

# Children of $1, and theirs.
descendants() {
  local child
  for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
    echo "$child"
    descendants "$child"
  done
}

for backend in gloo mpi; do
  if [ $backend = mpi ] && ! command -v mpirun >/dev/null; then
    echo "no mpirun: the mpi backend is left out"
    continue
  fi
  rm -rf run
  $renzan train small.yaml --run-dir run --workers 3 --threads 1 --backend $backend \
    --set training.epochs=1000000 >log.txt 2>&1 &
  launcher=$!
  for _ in $(seq 100); do
    grep -q '"running"' run/status.json 2>/dev/null && break
    sleep 0.1
  done
  grep -q '"running"' run/status.json || { cat log.txt; fail "$backend: never began"; }
  everyone=$(descendants $launcher)
  workers=()
  for pid in $everyone; do
    [ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$renzan")" ] && workers+=("$pid")
  done
  [ ${#workers[@]} -eq 3 ] || fail "$backend: ${#workers[@]} workers instead of 3"
  victim=${workers[1]}
  kill -KILL "$victim"
  SECONDS=0
  status=0
  wait $launcher || status=$?
  [ $SECONDS -le 20 ] || fail "$backend: took $SECONDS s to notice"
  [ $status -eq 69 ] || { cat log.txt; fail "$backend: exit $status instead of 69"; }
  grep -Eq "worker [0-9]|rank [0-9]" log.txt || { cat log.txt; fail "$backend: names nobody"; }
  grep -Eqi "signal 9|killed" log.txt || { cat log.txt; fail "$backend: does not say why"; }
  sleep 0.5
  for pid in $everyone; do
    if [ -d "/proc/$pid" ] && ! grep -q '^State:.*Z' "/proc/$pid/status"; then
      fail "$backend: process $pid was left behind"
    fi
  done
done
