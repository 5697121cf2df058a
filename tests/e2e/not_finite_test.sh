# A model that is not finite is never saved or scored and never replaces a good one, even if only
# the last update breaks it, if it happens between reports, or if only predictions are infinite.
source "$(dirname "$0")/lib.sh" "$@"

# Eight batches of 256. Dense values of 1e37 in the last one make predictions that are still finite,
# and gradients whose squares are not: Adagrad's sum becomes infinite, which no prediction reveals.
rows() { # FIRST LAST SIZE
  awk -v first=$1 -v last=$2 -v size=$3 'BEGIN {
    srand(1)
    for (row = first; row < last; row++)
      printf "%d,%g,%g,%d\n", rand() < 0.3, (rand() - 0.5) * size, (rand() - 0.5) * size, row % 97
  }'
}
cat >columns.yaml <<'YAML'
header: false
columns: {label: {role: label}, x: {role: dense}, y: {role: dense}, id: {role: categorical}}
YAML
import() { # NAME: from stdin
  cat >$1.csv
  $renzan data import --format csv --schema columns.yaml --output $1 $1.csv >/dev/null 2>&1 ||
    fail "cannot import $1"
}
(rows 0 1792 2; rows 1792 2048 1e37) | import huge
rows 0 2048 2 | import good
rows 0 2048 6e38 | import infinite

cat >run.yaml <<'YAML'
seed: 3
data: {train: {path: huge}, shuffle: false}
model: {embedding_dim: 8, bottom_mlp: [16], top_mlp: [16, 8]}
training: {batch_size: 256, log_every: 1000}
optimizer: {dense: {type: adagrad, learning_rate: 0.01}, sparse: {learning_rate: 0.01}}
YAML

for workers in 1 2; do
  # The last update, after which there are no predictions.
  expect_exit 70 "training diverged at step 8" $renzan train run.yaml --run-dir last$workers \
    --workers $workers
  [ ! -e last$workers/model ] || fail "a model that is not finite was saved"
  grep -q '"failed"' last$workers/status.json || fail "status.json does not say failed"

  # Between reports: the checkpoint of step 7 is kept as the newest.
  expect_exit 70 "training diverged at step 8" $renzan train run.yaml --run-dir keep$workers \
    --workers $workers --set training.epochs=3 --set checkpoint.every_steps=7 --set checkpoint.keep=1
  [ "$(checkpoints_in keep$workers/checkpoints)" = step-00000007 ] ||
    fail "not the last good checkpoint: $(ls keep$workers/checkpoints)"
  expect_exit 0 "AUC" $renzan eval keep$workers --data good
done

# A finite model with infinite predictions gets no score: not in training, eval or predict.
large="--set data.train.path=good --set optimizer.dense.learning_rate=0.5"
expect_exit 70 "of 2048 predictions are NaN or infinite, so the model is not saved" \
  $renzan train run.yaml --run-dir eval $large --set data.eval.path=infinite
if grep -q 'eval/' eval/metrics.jsonl; then fail "a score was recorded"; fi
[ ! -e eval/model ] || fail "a model without a score was saved"
expect_exit 0 "model" $renzan train run.yaml --run-dir run $large
for output in "" --json "--group-by id"; do
  expect_exit 70 "of 2048 predictions are NaN or infinite" $renzan eval run --data infinite $output
  if grep -qi "auc\|loss" out.txt; then cat out.txt; fail "a score was printed"; fi
done
for workers in 1 2; do
  for name in scores.csv scores.npy; do
    expect_exit 70 "of 2048 predictions are NaN or infinite, so $name is not written" \
      $renzan predict run --data infinite --output $name --workers $workers
    [ -z "$(ls | grep scores)" ] || fail "scores were left behind: $(ls)"
  done
done
expect_exit 0 "wrote 2048 scores" $renzan predict run --data good --output scores.csv
