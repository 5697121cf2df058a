#!/usr/bin/env bash
# renzan run: workers of any program, their variables, restarts, signals and exit codes.
source "$(dirname "$0")/lib.sh"
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT RENZAN_RUN_DIR RENZAN_CHECKPOINT_DIR \
  OMP_NUM_THREADS
run() { $renzan run --run-dir run "$@"; }

# Command lines.
touch words
expect_exit 64 "--workers" $renzan run -- true
expect_exit 64 "--workers" run --workers 0 -- true
expect_exit 64 "--backend" run --workers 2 --backend nccl -- true
expect_exit 64 "did you mean '--max-restarts'?" run --workers 2 --max-restart 3 -- true
expect_exit 64 "no command: it goes after --" run --workers 2
expect_exit 64 "renzan run --workers 2 -- echo hello" run --workers 2 echo hello
expect_exit 64 "--min 3 is more than --workers 2" run --workers 2 --min 3 -- true
expect_exit 64 "this is itself worker 1 of 4" env RANK=1 WORLD_SIZE=4 $renzan run --workers 2 -- true
expect_exit 127 "error: renzan run: program 'no_such' is not in PATH" run --workers 2 -- no_such
expect_exit 127 "does not exist" run --workers 2 --backend mpi -- ./no_such
expect_exit 126 "cannot execute './words'" run --workers 2 -- ./words
[ ! -e run ] || fail "a directory for a run that did not start"
printf '#!/no/such/python\n' >script
chmod +x script
expect_exit 127 "or its interpreter, does not exist" run --workers 2 -- ./script
! grep -q restarting out.txt || fail "restarted a program that does not exist"
expect_exit 73 "words" run --workers 2 --checkpoint-dir words/checkpoints -- true
# The command's words are not ours, and stay as they are.
run --workers 1 -- printf '<%s>' '[a,b]' '' -- --workers 9 '{}' run 2>log.txt >printed.txt
[ "$(cat printed.txt)" = '<[a,b]><><--><--workers><9><{}><run>' ] || fail "$(cat printed.txt)"

# The variables, and one line each for the start and the end.
cat >variables.py <<'PY'
import os, sys
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "RENZAN_RESTART",
         "RENZAN_RUN_DIR", "RENZAN_CHECKPOINT_DIR", "RENZAN_GRACE_SECONDS", "OMP_NUM_THREADS")
assert int(os.environ["MASTER_PORT"]) > 0
assert os.path.isdir(os.environ["RENZAN_CHECKPOINT_DIR"])
with open(sys.argv[1] + "." + os.environ["RANK"], "w") as file:
    file.write(" ".join(os.environ.get(name, "-") for name in names))
PY
for backend in $(several_worker_backends); do
  RENZAN_GRACE_SECONDS=7 expect_exit 0 "3 workers ($backend): python3 variables.py $backend; run \
directory $work/run, checkpoints $work/run/checkpoints" \
    run --workers 3 --backend $backend -- python3 variables.py $backend
  grep -qE '^renzan run: exit status 0 after [0-9]+s and 0 restarts: ' out.txt || fail "no end"
  [ "$(wc -l <out.txt)" = 2 ] || { cat out.txt >&2; fail "$backend: not two lines"; }
  for rank in 0 1 2; do
    [ "$(cat $backend.$rank)" = \
      "$rank 3 $rank 3 127.0.0.1 0 $work/run $work/run/checkpoints 7 -" ] ||
      fail "$backend, worker $rank: $(cat $backend.$rank)"
  done
done
# Without --run-dir: the environment's directory, or a new one named after the script.
RENZAN_RUN_DIR=ours RENZAN_CHECKPOINT_DIR=theirs $renzan run --workers 1 -- \
  python3 variables.py inherited 2>log.txt
[ "$(cat inherited.0)" = "0 1 0 1 127.0.0.1 0 $work/ours $work/theirs - -" ] ||
  fail "inherited: $(cat inherited.0)"
$renzan run --workers 1 -- python3 variables.py new 2>log.txt
grep -qE " $work/runs/variables-[^/]*Z $work/runs/variables-[^/]*Z/checkpoints - -$" new.0 ||
  fail "a new directory: $(cat new.0)"
# Started by a worker that is alone in its gang.
RANK=0 WORLD_SIZE=1 run --workers 2 -- python3 variables.py alone 2>log.txt
grep -q "^1 2 1 2 " alone.1 || fail "in a gang of one: $(cat alone.1)"

# end.py FIRST LATER: in the first attempt, worker 1 ends with FIRST and the others with 0; in later
# attempts, all end with LATER. -9: by a signal.
cat >end.py <<'PY'
import os, sys
first, later = map(int, sys.argv[1:])
status = first if os.environ["RANK"] == "1" else 0
status = status if os.environ["RENZAN_RESTART"] == "0" else later
if status < 0:
    os.kill(os.getpid(), -status)
if status == 1:
    raise ValueError("a traceback")
sys.exit(status)
PY
expect_exit 75 "and 0 restarts: workers ended with 0, 75" run --workers 2 -- python3 end.py 75 0
for status in 2 64 65 66 70 73 77 78 126 127; do
  expect_exit $status "worker 1 " run --workers 2 -- python3 end.py $status 0
  ! grep -q restarting out.txt || fail "restarted after $status"
done
for status in 1 3 69 71 74 137; do
  expect_exit 0 "ended with exit status $status: restarting with 2 workers in 1 s (restart 1 of 3)" \
    run --workers 2 -- python3 end.py $status 0
  grep -q "and 1 restart: workers ended with 0, 0" out.txt || fail "no restart counted"
done
expect_exit 1 "no restart is left after 1 restart: find out why the workers fail, or raise --max-restarts" \
  run --workers 2 --max-restarts 1 -- python3 end.py 1 1
expect_exit 1 "ended with exit status 1; the other workers were stopped" \
  run --workers 2 --max-restarts 0 -- python3 end.py 1 0
expect_exit 69 "was killed by signal 9 (Killed)" \
  run --workers 2 --max-restarts 0 -- python3 end.py -9 0

# A worker of four dies in each of three attempts: the rest goes on, down to --min.
cat >die.py <<'PY'
import os, signal, sys, time
with open("worlds", "a") as file:
    file.write(os.environ["RENZAN_RESTART"] + os.environ["WORLD_SIZE"] + "\n")
if os.environ["RENZAN_RESTART"] != "3":
    if os.environ["RANK"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    # Like a worker that finds its peer gone.
    time.sleep(0.5)
    sys.exit(1)
PY
for backend in $(several_worker_backends); do
  rm -f worlds
  expect_exit 0 "was killed by signal 9 (Killed): restarting with 3 workers in 1 s" \
    run --max 4 --min 2 --backend $backend -- python3 die.py
  grep -q "restarting with 2 workers in 2 s (restart 2 of 3)" out.txt || fail "$backend: no 2"
  grep -q "restarting with 2 workers in 4 s (restart 3 of 3)" out.txt || fail "$backend: under --min"
  grep -q "exit status 0 after .* and 3 restarts" out.txt || fail "$backend: no end"
  [ "$(sort worlds | uniq -c | tr -s ' \n' ' ')" = " 4 04 3 13 2 22 2 32 " ] ||
    { cat worlds >&2; fail "$backend: other workers than told"; }
done

# serve.py: reports each SIGUSR1, and ends with 75 on SIGTERM, after its own time.
cat >serve.py <<'PY'
import os, signal, sys, time
def tell(word):
    with open("told." + os.environ["RANK"], "a") as file:
        file.write(word + "\n")
def stop(*_):
    time.sleep(0.3 * int(os.environ["RANK"]))
    tell("stopped")
    sys.exit(75)
signal.signal(signal.SIGUSR1, lambda *_: tell("checkpoint"))
signal.signal(signal.SIGTERM, stop)
tell("ready")
while True:
    signal.pause()
PY
# told COUNT WORD: COUNT workers have written WORD.
told() { [ "$(cat told.* 2>/dev/null | grep -c "^$2$")" = "$1" ]; }
for backend in $(several_worker_backends); do
  rm -f told.*
  $renzan run --workers 3 --run-dir run --backend $backend -- python3 serve.py >log.txt 2>&1 &
  launcher=$!
  wait_for told 3 ready
  kill -USR1 $launcher
  wait_for told 3 checkpoint
  everyone=$(descendants $launcher)
  kill -TERM $launcher
  expect_end 75
  told 3 stopped || fail "$backend: a worker had no time to stop"
  told 3 checkpoint || fail "$backend: a signal came twice"
  expect_no_process_left $everyone
done
expect_log "exit status 75 after"

# Workers that handle no signals.
cat >sleep.py <<'PY'
import os, time
open("sleeps." + os.environ["RANK"], "w").close()
time.sleep(600)
PY
declined_or_has_ended() {
  grep -q "SIGUSR1 was not passed on to 2 of 2 workers" log.txt || has_ended $launcher
}
sleeping() { [ -e sleeps.0 ] && [ -e sleeps.1 ]; }
for end in "TERM 75 15" "HUP 75 1" "INT 130 2"; do
  read -r signal status number <<<"$end"
  rm -f sleeps.*
  (with_default_signals $renzan run --workers 2 --max-restarts 0 --run-dir run -- \
    python3 sleep.py) >log.txt 2>&1 &
  launcher=$!
  wait_for sleeping
  kill -USR1 $launcher
  wait_for declined_or_has_ended
  expect_log "SIGUSR1 was not passed on to 2 of 2 workers"
  everyone=$(descendants $launcher)
  kill -$signal $launcher
  expect_end $status
  expect_log "renzan run: stopped by signal $number"
  expect_no_process_left $everyone
done

# When the launcher is killed, nothing is left, not even processes that workers have started.
for backend in $(several_worker_backends); do
  rm -f sleeps.*
  if [ $backend = gloo ]; then command=(sh -c 'python3 sleep.py; true'); else command=(python3 sleep.py); fi
  $renzan run --workers 2 --run-dir run --backend $backend -- "${command[@]}" >log.txt 2>&1 &
  launcher=$!
  wait_for sleeping
  everyone=$(descendants $launcher)
  [ "$(wc -w <<<"$everyone")" -ge 3 ] || fail "$backend: few processes: $everyone"
  kill -KILL $launcher
  expect_end 137
  expect_no_process_left $everyone
done

# An unmodified script of PyTorch.
if python3 -c 'import torch.distributed' 2>/dev/null; then
  cat >sum.py <<'PY'
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
numbers = torch.full((3,), float(dist.get_rank() + 1))
dist.all_reduce(numbers)
assert numbers.tolist() == [6.0] * 3, numbers
PY
  GLOO_SOCKET_IFNAME=lo expect_exit 0 "workers ended with 0, 0, 0" run --workers 3 -- python3 sum.py
else
  echo "no PyTorch: torch.distributed is not tried"
fi
