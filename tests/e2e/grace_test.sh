# RENZAN_GRACE_SECONDS: if a full checkpoint is due but would not finish before SIGKILL, the last
# checkpoint is an increment.
source "$(dirname "$0")/lib.sh" "$@"
# Tables of 1000 rows: a few steps change some of them, many steps nearly all.
$renzan data synth --format dataset --seed 7 --rows 40000 --features 4 --rows-per-table 1000 \
  --output data >/dev/null
cat >small.yaml <<YAML
data: {train: {path: data}}
model: {embedding_dim: 4096, bottom_mlp: [16], top_mlp: [16]}
training: {batch_size: 32, log_every: 50}
YAML

kind_of() { sed -n 's/.*"kind": "\([a-z]*\)".*/\1/p' "$1/manifest.json"; }

# Start with a full checkpoint and a small increment. An increment nearly as large as a full
# checkpoint would be replaced by a full one.
$renzan train small.yaml --run-dir begun --set training.max_steps=15 \
  --set checkpoint.every_steps=10 2>/dev/null
rm -r begun/model
$renzan train small.yaml --run-dir begun --set training.max_steps=25 \
  --set checkpoint.every_steps=20 2>/dev/null
rm -r begun/model
[ "$(checkpoints_in begun/checkpoints | xargs)" = "step-00000020 step-00000010" ] ||
  fail "$(ls begun/checkpoints)"
[ "$(kind_of begun/checkpoints/step-00000010)" = full ] || fail "no full checkpoint to begin with"
[ "$(kind_of begun/checkpoints/step-00000020)" = incremental ] || fail "no increment to begin with"

trained_long() { [ "$(status_of step)" -ge 1500 ]; }

# stop_with SECONDS KIND: the last checkpoint is of KIND. "" is an unknown grace period.
stop_with() {
  local newest
  rm -rf run
  cp -r begun run
  export RENZAN_GRACE_SECONDS=$1
  train_in_background --workers 1 --threads 1 --set training.epochs=1000000
  wait_for trained_long
  kill -TERM $launcher
  expect_end 75
  newest=$(checkpoints_in run/checkpoints | head -1)
  [ "$(kind_of run/checkpoints/$newest)" = "$2" ] ||
    { cat log.txt; fail "a grace of '$1' s: $newest is $(kind_of run/checkpoints/$newest)"; }
}

stop_with "" full
stop_with 60 full
stop_with 0.05 incremental
expect_exit 0 "incremental, step" $renzan checkpoint verify run/checkpoints
expect_exit 64 "RENZAN_GRACE_SECONDS is 'soon'" env RENZAN_GRACE_SECONDS=soon $renzan train \
  small.yaml --run-dir other
