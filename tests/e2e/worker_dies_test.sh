# Without restarts, the death of a worker ends the run, long before the deadline of an exchange, with
# an error that names the worker. No process is left behind.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data

for backend in $(several_worker_backends); do
  rm -rf run
  train_in_background --workers 3 --threads 1 --backend $backend --set training.epochs=1000000 \
    --set elastic.max_restarts=0 --set comm.timeout_seconds=3600
  everyone=$(descendants $launcher)
  workers=($(workers_of $launcher))
  [ ${#workers[@]} -eq 3 ] || fail "$backend: ${#workers[@]} workers instead of 3"
  kill -KILL "${workers[1]}"
  expect_end 69
  grep -Eq "worker [0-9]|rank [0-9]" log.txt || { cat log.txt; fail "$backend: does not name the worker"; }
  grep -Eqi "signal 9|killed" log.txt || { cat log.txt; fail "$backend: does not say why"; }
  ! grep -q "restarting with" log.txt || { cat log.txt; fail "$backend: started again"; }
  expect_no_process_left $everyone
done
