# Labels that are numbers, from end to end: imported, learned by squared error to PyTorch's losses
# beside a task of 0 and 1, with the same sha256 for any workers, threads, backends and kills;
# evaluated by RMSE and MAE, which decide about the best model; predicted as they are; and refused
# where another loss or metric was asked for. Then ratings of MovieLens.
source "$(dirname "$0")/lib.sh" "$@"
golden=$source_root/tests/golden/numbers
python3 "$golden/videos.py" >videos.csv
$renzan data import --format csv --schema "$golden/schema.yaml" --output videos videos.csv >out.txt \
  2>log.txt || fail "$(cat log.txt)"
grep -q "^label 'rating': mean 3.007, from 1 to 5$" out.txt || fail "$(cat out.txt)"
grep -q "format_version: 8" videos/dataset.yaml || fail "another version: $(cat videos/dataset.yaml)"
$renzan data inspect videos >out.txt
grep -q "label 'rating' with mean 3.007, from 1 to 5" out.txt && grep -q "mean label" out.txt ||
  fail "$(cat out.txt)"
$renzan data inspect videos --json | python3 -c '
import json, sys
out = json.load(sys.stdin)
assert out["label_values"] == {"min": 1, "mean": out["label_mean"], "max": 5}, out
assert out["further_labels"][0]["positive_rows"] > 0 and "label_rate" not in out, out'

train() {  # RUN MORE...
  local run=$1
  shift
  $renzan train "$golden/mmoe.yaml" --run-dir $run "$@" 2>log.txt || fail "$(cat log.txt)"
}
train mmoe --workers 1 --threads 1
python3 - "$golden/mmoe.json" mmoe/metrics.jsonl <<'PYTHON'
import json, math, sys
records = [json.loads(line) for line in open(sys.argv[2])]
for output, expected in json.load(open(sys.argv[1]))["losses"].items():
    losses = [record[f"train/{output}/loss"] for record in records]
    assert len(losses) == len(expected) == 10, losses
    assert max(abs(a - b) / max(1, b) for a, b in zip(losses, expected)) < 2e-6, (losses, expected)
for record in records:
    assert abs(record["train/rating/rmse"] ** 2 - record["train/rating/loss"]) < 1e-9, record
    assert 0 < record["train/rating/mae"] <= record["train/rating/rmse"], record
    assert "train/rating/auc" not in record and "train/finished/rmse" not in record, record
PYTHON
without_times() { sed 's/"time":[^,]*,//; s/"train.samples_per_second":[^,}]*//' "$1/metrics.jsonl"; }
for how in "--workers 2 --threads 1 --backend gloo" "--workers 3 --threads 2" "--workers 1 --threads 3"; do
  # shellcheck disable=SC2086
  train many $how --set training.max_steps=4
  train many --workers 4 --threads 1
  [ "$(sha256_of many)" = "$(sha256_of mmoe)" ] || fail "other bits with $how"
  cmp <(without_times many) <(without_times mmoe) || fail "$how: a resumed run reports other metrics"
  rm -r many
done
# Killed between two reports, so that the checkpoint holds a part of their metrics.
cp "$golden/mmoe.yaml" small.yaml
long=(--set training.epochs=300 --set training.log_every=70 --set checkpoint.every_steps=20)
train whole --workers 1 --set training.epochs=300 --set training.log_every=70
train_in_background --workers 2 --threads 1 "${long[@]}"
has_checkpoint() {
  [ -n "$(checkpoints_in run/checkpoints 2>/dev/null || true)" ] || [ ! -d /proc/$launcher ]
}
wait_for has_checkpoint
for pid in $(workers_of $launcher) $launcher; do kill -KILL "$pid" 2>/dev/null || true; done
wait $launcher 2>/dev/null || true
launcher=""
[ ! -e run/model ] || fail "it was trained before it was killed"
$renzan train small.yaml --run-dir run --workers 3 --threads 1 "${long[@]}" \
  --set checkpoint.every_steps=1000 2>log.txt ||
  fail "$(cat log.txt)"
grep -q "resuming from" log.txt || fail "$(cat log.txt)"
[ "$(sha256_of run)" = "$(sha256_of whole)" ] || fail "other bits after a kill"
cmp <(without_times run) <(without_times whole) || fail "other metrics after a kill"
# The graph as a user copies it.
{ sed '/^model:/,/^training:/ {/^training:/!d}' "$golden/mmoe.yaml"
  $renzan train --print-config "$golden/mmoe.yaml" | sed -n '/^# model:/,$ s/^# //p'; } >blocks.yaml
grep -q "loss: squared_error" blocks.yaml || fail "$(cat blocks.yaml)"
$renzan train blocks.yaml --run-dir blocks 2>log.txt || fail "$(cat log.txt)"
[ "$(sha256_of blocks)" = "$(sha256_of mmoe)" ] || fail "other bits as blocks"

# Predictions are the numbers themselves.
$renzan eval mmoe --data videos --json >one.json 2>log.txt || fail "$(cat log.txt)"
$renzan eval mmoe --data videos --json --workers 2 >two.json 2>log.txt || fail "$(cat log.txt)"
cmp one.json two.json || fail "two workers measure something else"
$renzan eval mmoe --data videos >eval.txt
[ "$(grep -c "^RMSE" eval.txt)" = 2 ] && [ "$(grep -c "^AUC" eval.txt)" = 2 ] || fail "$(cat eval.txt)"
$renzan predict mmoe --data videos --output scores.csv --with rating,weight 2>log.txt ||
  fail "$(cat log.txt)"
python3 - <<'PYTHON'
import csv, json, math
rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(open("scores.csv"))]
assert all(0 < row["score_finished"] < 1 for row in rows), rows[0]
got = json.load(open("one.json"))["outputs"]["rating"]
for found, weight in (got, lambda row: 1), (got["weighted"], lambda row: row["weight"]):
    total = sum(map(weight, rows))
    mean = lambda f: sum(weight(row) * f(row) for row in rows) / total
    for name, value in {"rmse": math.sqrt(mean(lambda r: (r["score_rating"] - r["rating"]) ** 2)),
                        "mae": mean(lambda r: abs(r["score_rating"] - r["rating"])),
                        "mean_prediction": mean(lambda r: r["score_rating"]),
                        "mean_label": mean(lambda r: r["rating"])}.items():
        assert abs(found[name] - value) < 1e-6, (name, found, value)
PYTHON
# Groups have scores of the output whose label is 0 or 1.
$renzan eval mmoe --data videos --group-by user --json >groups.json 2>log.txt || fail "$(cat log.txt)"
python3 -c 'import json
outputs = json.load(open("groups.json"))["outputs"]
plain = json.load(open("one.json"))["outputs"]
assert "group_auc" in outputs["finished"].pop("group_by") and outputs == plain, outputs' ||
  fail "$(cat groups.json)"
expect_exit 0 "group AUC" $renzan eval mmoe --data videos --group-by user

# A model of one output learns from the first label, by its squared error; RMSE decides.
other() {  # MORE
  rm -rf other
  $renzan train "$golden/mmoe.yaml" --run-dir other --set data.eval.path=videos \
    --set training.eval_every=2 --set "model={type: dcnv2, embedding_dim: 8}" "$@"
}
other --set training.keep_best=true --set training.early_stopping.patience=3 \
  --set optimizer.schedule.plateau.patience=2 2>log.txt || fail "$(cat log.txt)"
grep -q "eval at step 2: RMSE [0-9.]*, MAE [0-9.]*, mean prediction .*; the best so far" log.txt ||
  fail "$(cat log.txt)"
python3 - <<'PYTHON'
import json
evaluations = [json.loads(line) for line in open("other/metrics.jsonl") if "eval/rmse" in line]
best = min(evaluations, key=lambda e: e["eval/weighted/rmse"])["step"]
manifest = json.load(open("other/model/manifest.json"))
assert manifest["step"] == best and len(evaluations) > 3, (manifest["step"], evaluations)
PYTHON
$renzan predict other --data videos --output single.csv 2>log.txt || fail "$(cat log.txt)"
head -1 single.csv | grep -qx score || fail "$(head -1 single.csv)"
other --set training.keep_best=true --set training.early_stopping.metric=mae 2>log.txt ||
  fail "$(cat log.txt)"
grep -q "best weighted mae" log.txt || grep -q "the best so far" log.txt || fail "$(cat log.txt)"
expect_exit 78 "training.group_by: groups are measured for labels of 0 and 1" other \
  --set training.group_by=user
# Labels of 0 and 1 may be learned by squared error, too.
rm -rf other
$renzan train "$golden/mmoe.yaml" --run-dir other --set \
  "model={type: deepfm, embedding_dim: 8, outputs: {finished: {loss: squared_error}}}" 2>log.txt ||
  fail "$(cat log.txt)"
$renzan eval other --data videos | grep -q "^RMSE  *0\.[0-9]*$" || fail "no RMSE"

# What cannot be is refused before anything is written.
rm -rf other
expect_exit 78 "auc is no metric of an output that learns by squared_error: choose one of rmse, mae" \
  other --set training.keep_best=true --set training.early_stopping.metric=auc
expect_exit 78 "optimizer.schedule.plateau.metric: log_loss is no metric of an output" other \
  --set optimizer.schedule.plateau.patience=2 --set optimizer.schedule.plateau.metric=log_loss
expect_exit 78 "model.outputs.rating.loss: binary_cross_entropy needs labels of 0 and 1, but the \
label 'rating' is a number" other \
  --set "model={type: deepfm, outputs: {rating: {loss: binary_cross_entropy}}}"
for setting in pos_weight=2 label_smoothing=0.1; do
  expect_exit 78 "is a setting of binary_cross_entropy, by which no output learns" other \
    --set training.loss.$setting
done
expect_exit 78 "esmm multiplies probabilities" other --set "model={type: esmm, embedding_dim: 8}"
expect_exit 78 "rmse is no metric of an output that learns by binary_cross_entropy" other \
  --set "model={type: deepfm, outputs: {finished: {}}}" --set training.keep_best=true \
  --set training.early_stopping.metric=rmse
expect_exit 78 "binary_cross_entropy needs labels of 0 and 1" $renzan plan "$golden/mmoe.yaml" \
  --set "model={type: deepfm, outputs: {rating: {loss: binary_cross_entropy}}}"
[ ! -e other ] || fail "a run was begun"
# A probability is no number.
{ sed '/^model:/,/^training:/ {/^training:/!d}' "$golden/mmoe.yaml"; cat <<'YAML'; } >product.yaml
model:
  type: blocks
  embedding_dim: 8
  blocks:
    x: {type: concat, inputs: [dense, embeddings]}
    a: {type: mlp, inputs: [x], layers: [1], linear_output: true}
    b: {type: mlp, inputs: [x], layers: [1], linear_output: true}
    rating: {type: product_of_probabilities, inputs: [a, b]}
YAML
expect_exit 78 "learns by squared_error, but it gives a probability" $renzan train product.yaml \
  --run-dir other
[ ! -e other ] || fail "a run was begun"
# Nor can predictions be corrected for negatives that are missing.
python3 - <<'PYTHON'
import csv
rows = list(csv.DictReader(open("videos.csv")))
with open("clicks.csv", "w") as file:
    print("finished,user,length", file=file)
    for row in rows:
        if row["finished"]:
            print(row["finished"], row["user"], row["length"], sep=",", file=file)
PYTHON
printf 'columns:\n  finished: {role: label}\n  user: {role: categorical}\n  length: {role: dense}\n' \
  >clicks.yaml
$renzan data import --format csv --schema clicks.yaml --keep-negatives 0.5 --output clicks clicks.csv \
  >/dev/null 2>&1
expect_exit 78 "for which predictions by squared_error cannot be corrected" $renzan train \
  "$golden/mmoe.yaml" --run-dir other --set data.train.path=clicks \
  --set "model={type: deepfm, outputs: {finished: {loss: squared_error}}}"
# Data whose label is not the model's kind of label.
sed 's/, values: number/, at_least: 4/' "$golden/schema.yaml" >binary.yaml
$renzan data import --format csv --schema binary.yaml --output binary videos.csv >/dev/null 2>&1
expect_exit 78 "its label 'rating' was mapped by 'at_least 4', but that of the training data by \
'values number'" $renzan eval mmoe --data binary

# MovieLens, as docs/training.md has it.
zip=$shared_data/ml-latest-small/ml-latest-small.zip
[ -e $zip ] || { echo "without MovieLens: $zip is absent"; exit 0; }
python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall()' $zip
python3 - "$source_root/docs/training.md" <<'PYTHON'
import re, sys
section = open(sys.argv[1]).read().split("## Ratings and other numbers")[1].split("\n## ")[0]
for name, text in zip(("ratings", "stars"), re.findall("```yaml\n(.*?)```", section, re.S)):
    open(name + ".yaml", "w").write(text)
PYTHON
$renzan data import ml-latest-small/ratings.csv --format csv --schema ratings.yaml \
  --vocabulary threshold:2 --split random:0.1 --output ratings >out.txt 2>log.txt ||
  fail "$(cat log.txt)"
$renzan train stars.yaml --run-dir stars 2>log.txt || fail "$(cat log.txt)"
$renzan eval stars --json 2>/dev/null | python3 -c '
import json, sys
got = json.load(sys.stdin)
print("MovieLens:", got)
assert got["rmse"] < 0.87 and abs(got["mean_prediction"] - got["mean_label"]) < 0.1, got'
