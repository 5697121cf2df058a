# Sourced by every end-to-end test: bash NAME_test.sh PATH_TO_RENZAN
set -euo pipefail
renzan=$(readlink -f "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_root=$(cd "$here/../.." && pwd)
shared_data=$source_root/../shared/data
# Prefer the distribution's Python, which has numpy.
export PATH=/usr/bin:$PATH
work=$(mktemp -d)
launcher=""  # a run in the background, ended with the test
trap '[ -z "$launcher" ] || kill -KILL "$launcher" || true; rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

skip() {
  echo "skipped: $*"
  exit 77
}

# expect_exit CODE FRAGMENT COMMAND...: the command exits with CODE and its output contains
# FRAGMENT.
expect_exit() {
  local code=$1 fragment=$2 status=0
  shift 2
  "$@" >out.txt 2>&1 </dev/null || status=$?
  [ "$status" -eq "$code" ] || { cat out.txt >&2; fail "exit $status instead of $code: $*"; }
  grep -qF -- "$fragment" out.txt || { cat out.txt >&2; fail "no '$fragment' from: $*"; }
}

# sha256_of RUN_DIR: the model_sha256 of its model.
sha256_of() {
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["model_sha256"])' \
    "$1/model/manifest.json"
}

# small_config DATA: writes small.yaml, a configuration that trains in a moment.
small_config() {
  cat >small.yaml <<YAML
seed: 3
data: {train: {path: $1, rows: [0, 3000]}, eval: {path: $1, rows: [3000, 4000]}}
model: {embedding_dim: 8, bottom_mlp: [16], top_mlp: [16, 8], cross_layers: 2, cross_rank: 4}
training: {batch_size: 256, log_every: 4}
optimizer: {dense: {learning_rate: 0.05}, sparse: {learning_rate: 0.05}}
YAML
}

# names_with_colons NAME: writes the dataset NAME, whose columns user:geo and user:id hold several
# ids per row, and NAME.yaml, a configuration that sums them.
names_with_colons() {
  cat >columns.yaml <<'YAML'
columns:
  label: {role: label}
  x: {role: dense}
  "user:geo": {role: multi_hot}
  "user:id": {role: multi_hot}
YAML
  awk 'BEGIN {
    print "label,x,user:geo,user:id"
    for (row = 0; row < 1024; row++)
      printf "%d,%g,%d|%d,%d|%d\n", row % 3 == 0, row % 10 / 10, row % 7, row % 5, row % 90, row % 11
  }' >$1.csv
  $renzan data import --format csv --schema columns.yaml --output $1 $1.csv >/dev/null
  cat >$1.yaml <<YAML
data: {train: {path: $1}}
model:
  {embedding_dim: 8, bottom_mlp: [16], top_mlp: [16],
   tables: {"user:geo": {pooling: sum}, "user:id": {pooling: sum}}}
training: {batch_size: 256}
YAML
}

# with_default_signals COMMAND...: replaces this (sub)shell. A shell starts background jobs with
# SIGINT ignored, and nohup ignores SIGHUP; this restores the default.
with_default_signals() {
  exec python3 -c 'import os, signal, sys
for number in signal.SIGINT, signal.SIGHUP: signal.signal(number, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$@"
}

# The backends that several workers on this machine can use.
several_worker_backends() {
  echo gloo
  if command -v mpirun >/dev/null; then echo mpi; else echo "no mpirun: mpi is left out" >&2; fi
}

# All descendants of process $1.
descendants() {
  local child
  for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
    echo "$child"
    descendants "$child"
  done
}

# has_ended PID: true for a zombie, too.
has_ended() { ! grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status"; }

# expect_running: waits until the run in the directory `run`, started as $launcher, trains.
expect_running() {
  wait_for trains_or_has_ended
  is_training || { show_log; fail "the run ended before it trained"; }
}
is_training() { grep -qs '"running"' run/status.json; }
trains_or_has_ended() { is_training || has_ended "$launcher"; }

# expect_no_process_left PID...: they have ended, or end within a moment.
expect_no_process_left() {
  local pid
  for pid in "$@"; do
    wait_limit=10 wait_for has_ended "$pid"
  done
}

# workers_of LAUNCHER: process ids of its workers, started by mpirun or by itself.
workers_of() {
  local pid
  for pid in $(descendants "$1"); do
    if [ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$renzan")" ]; then echo "$pid"; fi
  done
}

# train_in_background OPTION...: `renzan train small.yaml` in the directory `run`, logged to
# log.txt. Returns when it has trained some steps. Its process id is $launcher.
train_in_background() {
  rm -f run/status.json
  $renzan train small.yaml --run-dir run "$@" >log.txt 2>&1 &
  launcher=$!
  expect_trained
}

# expect_trained: like expect_running, until some steps are done.
expect_trained() {
  expect_running
  wait_for grep -Eq '"step": [1-9]' run/status.json
}

# expect_end CODE: $launcher exits with CODE.
expect_end() {
  local status=0
  wait $launcher || status=$?
  launcher=""
  [ $status -eq "$1" ] || { show_log; fail "exit $status instead of $1"; }
}

# expect_log FRAGMENT
expect_log() {
  grep -qF -- "$1" log.txt || { show_log; fail "no '$1' in the log"; }
}

# wait_for COMMAND...: waits until the command succeeds. The limit only ends a test that hangs:
# machines differ, and may be busy. Pauses are as long as the command takes, so that what is waited
# for has a processor, too.
wait_for() {
  local end=$((SECONDS + ${wait_limit:-550})) begun=${EPOCHREALTIME/[.,]/} pause_us pause
  until "$@"; do
    [ $SECONDS -lt $end ] || { show_log; fail "timed out waiting for: $*"; }
    pause_us=$((${EPOCHREALTIME/[.,]/} - begun))
    pause_us=$((pause_us < 20000 ? 20000 : pause_us > 200000 ? 200000 : pause_us))
    printf -v pause '0.%06d' $pause_us
    sleep $pause
    begun=${EPOCHREALTIME/[.,]/}
  done
}
show_log() { [ ! -e log.txt ] || cat log.txt >&2; }

# status_of KEY [RUN_DIR]: a value in status.json, such as "stopped" or "checkpoint 120".
status_of() {
  python3 -c 'import json, sys
value = json.load(open(sys.argv[2] + "/status.json"))[sys.argv[1]]
print("checkpoint %d" % value["step"] if isinstance(value, dict) else value)' "$1" "${2:-run}"
}

# checkpoints_in DIR: names, newest first.
checkpoints_in() {
  ls "$1" | grep -E '^step-[0-9]{8}$' | sort -r
}

# train_until_checkpoints COUNT RUN_DIR OPTION...: trains small.yaml in RUN_DIR, logged to log.txt,
# until a run has written COUNT checkpoints. One that is due while the previous one is being written
# is skipped, so on a busy disk a short run may write few, and is repeated.
train_until_checkpoints() {
  local count=$1 run=$2 written end=$((SECONDS + 300))
  shift 2
  while [ $SECONDS -lt $end ]; do
    rm -rf "$run"
    $renzan train small.yaml --run-dir "$run" "$@" >log.txt 2>&1 ||
      { show_log; fail "training failed"; }
    written=$(grep -c 'checkpoint step-[0-9]*: ' log.txt || true)
    [ "$written" -lt "$count" ] || return 0
  done
  fail "only $written checkpoints"
}
