# A run may resume with other paths, another placement or another length, but not with another
# configuration or other data; the error names the difference.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
$renzan data synth --format dataset --seed 8 --rows 4000 --output other_data >/dev/null
small_config data
long=(--set training.epochs=20 --set checkpoint.every_steps=10)
train_until_checkpoints 5 whole "${long[@]}"
newest=$(checkpoints_in whole/checkpoints | head -1)
step=$((10#${newest#step-}))
expected=$(sha256_of whole)
rm -r whole/model
begin() { rm -rf run && cp -r whole run; }
# Checksums of all files but the lock, which names its last owner.
content() { find run -type f ! -name .lock -print0 | sort -z | xargs -0 sha256sum; }
resume() { $renzan train small.yaml --run-dir run "${long[@]}" "$@"; }

# Other values, one key at a time. The refused runs change nothing.
begin
before=$(content)
for override in seed=4 optimizer.dense.learning_rate=0.06 optimizer.sparse.type=adagrad \
  model.top_mlp=[8] training.batch_size=128 comm.forward=fp16 numerics.virtual_workers=4 \
  numerics.precision=bf16 \
  'data.train.rows=[0, 2000]' data.shuffle=false; do
  expect_exit 78 "is another run's checkpoint: ${override%%=*} is" resume --set "$override"
  grep -q "choose another --run-dir to start a new run" out.txt || fail "$(cat out.txt)"
done
expect_exit 78 "was trained on other data: dataset.train is" resume \
  --set data.train.path=other_data
expect_exit 78 "beyond the 11 steps to train" resume --set training.epochs=1
[ "$(content)" = "$before" ] || fail "a refused run changed something"

# Other paths of data, run and checkpoints, and other reports: the same bits.
cp -r data moved_data
mkdir away
begin
mv run away/run
mv away/run/checkpoints away/checkpoints
expect_exit 0 "resuming from $newest at step $step" $renzan train small.yaml --run-dir away/run \
  "${long[@]}" --set checkpoint.dir=away/checkpoints --set data.train.path=moved_data \
  --set data.eval.path=moved_data --set training.log_every=7 --set training.eval_every=50 \
  --set checkpoint.keep=1 --set checkpoint.incremental=false --workers 2 --threads 1
[ "$(sha256_of away/run)" = "$expected" ] || fail "different bits elsewhere"

# --resume: without a configuration file, and only if there is a checkpoint.
begin
expect_exit 0 "resuming from $newest" $renzan train --resume --run-dir run --workers 2
[ "$(sha256_of run)" = "$expected" ] || fail "different bits with --resume"
expect_exit 0 "is already trained to step 220: model sha256 $expected" $renzan train --resume \
  --run-dir run
expect_exit 0 "is already trained" resume
expect_exit 66 "new/checkpoints has no checkpoint to resume from" $renzan train small.yaml --resume \
  --run-dir new
[ ! -e new ] || fail "a run directory was made"
expect_exit 66 "nowhere" $renzan train --resume --run-dir nowhere
expect_exit 64 "needs --run-dir" $renzan train --resume
rm -r run/model run/checkpoints
expect_exit 66 "has no checkpoint to resume from" $renzan train --resume --run-dir run

# A run that ended before its first checkpoint resumes from the beginning.
rm -rf run
$renzan train small.yaml --run-dir run --set training.epochs=20000 >log.txt 2>&1 &
launcher=$!
expect_running
kill -KILL $launcher
wait $launcher 2>/dev/null || true
launcher=""
expect_exit 0 "run was stopped before its first checkpoint: it begins at step 0" \
  $renzan train --resume --run-dir run --set training.epochs=20
[ "$(sha256_of run)" = "$expected" ] || fail "different bits from the beginning"

# A finished run may be extended, and ends with the bits of a run of the full length.
$renzan train small.yaml --run-dir longer "${long[@]}" --set training.epochs=25 2>/dev/null
expect_exit 0 "at step 220" resume --set training.epochs=25
[ "$(sha256_of run)" = "$(sha256_of longer)" ] || fail "different bits when extended"
expect_exit 78 "run has its checkpoints in run/checkpoints" \
  resume --set training.epochs=30 --set checkpoint.dir=elsewhere
expect_exit 78 "beyond the 220 steps to train" resume

# Tables whose names share a prefix. Another configuration is refused even after a finished run.
names_with_colons colons
$renzan train colons.yaml --run-dir colons_run 2>/dev/null
sed 's/"user:id": {pooling: sum}/"user:id": {pooling: mean}/' colons.yaml >mean.yaml
expect_exit 78 'model.tables."user:id".pooling is sum there and mean here' \
  $renzan train mean.yaml --run-dir colons_run
expect_exit 78 'model.tables."user:id".pooling is sum there and mean here' \
  $renzan train mean.yaml --run-dir colons_run --set training.epochs=2
