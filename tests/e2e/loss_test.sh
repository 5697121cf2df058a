# What a sample's loss is, from import to scores: weights, pos_weight and label smoothing, and
# negative downsampling, whose scores are corrected. The same bits on any number of workers.
source "$(dirname "$0")/lib.sh" "$@"

# Rare positives, whose probability depends on the shop and on x; a weight for each row.
python3 - <<'PY'
import numpy as np
random = np.random.default_rng(5)
def write(name, rows):
    shop, x = random.integers(0, 20, rows), random.random(rows)
    y = random.random(rows) < 1 / (1 + np.exp(5.2 - 0.12 * shop - x))
    w = random.choice([0, 0.5, 1, 2.5], rows)
    with open(name, "w") as file:
        file.write("y,w,x,shop\n")
        file.writelines(f"{int(a)},{b},{c:.3f},s{d}\n" for a, b, c, d in zip(y, w, x, shop))
write("train.csv", 60000)
write("test.csv", 20000)
PY
cat >schema.yaml <<'YAML'
columns: {y: {role: label}, w: {role: weight}, x: {role: dense}, shop: {role: categorical}}
YAML
sed 's/role: weight/role: skip/' schema.yaml >plain.yaml
import() { $renzan data import --format csv "$@"; }
import train.csv --schema plain.yaml --vocabulary threshold:1 --keep-negatives 0.1 --seed 4 \
  --output sampled >import.txt
grep -q "^kept [0-9]* of 5[0-9]* rows with label 0 (--keep-negatives 0.1)" import.txt ||
  fail "$(cat import.txt)"
import test.csv --schema plain.yaml --vocabulary-from sampled --output test >/dev/null
import test.csv --schema plain.yaml --vocabulary-from sampled --keep-negatives 0.25 \
  --output sampled_test >/dev/null
cat >small.yaml <<'YAML'
seed: 3
data: {train: {path: sampled}, eval: {path: test}}
model: {embedding_dim: 4, bottom_mlp: [8], top_mlp: [8], cross_layers: 1, cross_rank: 4}
training: {batch_size: 128, epochs: 12, log_every: 50}
optimizer: {dense: {learning_rate: 0.1}, sparse: {learning_rate: 0.1}}
YAML

# Downsampled training is calibrated for the whole population, and for other samples of it.
$renzan train small.yaml --run-dir run 2>train.txt
grep -q "sampled has 0.1 of the negatives: predict corrects scores for that; evaluations on \
test, which has all negatives, shift logits by -2.3026" train.txt || fail "$(cat train.txt)"
grep -q "negatives_kept: 0.1" run/model/manifest.json || fail "the model does not record the share"
$renzan predict run --data test --output scores.npy 2>predict.txt
grep -q "trained on 0.1 of the negatives: logits are shifted by -2.3026" predict.txt ||
  fail "$(cat predict.txt)"
# A run that starts from it on other shares is warned.
expect_exit 0 "the model was trained on 0.1 of the negatives, and this data has all negatives: until \
training has corrected it, logits are off by 2.3026" $renzan train small.yaml \
  --set data.train.path=test --initialize-from run --run-dir started
for data in test sampled_test sampled; do
  $renzan eval run --data $data --json >$data.json
done
expect_exit 0 "logit shift         -0.9163  (trained on 0.1 of the negatives, the dataset has 0.25 \
of the negatives)" $renzan eval run --data sampled_test
python3 - <<'PY' || fail "not calibrated"
import json, numpy as np
read = lambda name: json.load(open(f"{name}.json"))
label, score = np.load("test/shard-00000/label.npy"), np.load("scores.npy").astype(float)
base, mean = label.mean(), score.mean()
odds = score / (1 - score) / 0.1  # as the model learned them
uncorrected = odds / (1 + odds)
print(f"base rate {base:.4f}, mean score {mean:.4f}, uncorrected {uncorrected.mean():.4f}")
assert abs(mean / base - 1) < 0.1, (mean, base)
assert uncorrected.mean() > 4 * base
assert read("test")["logit_shift"] == np.float32(np.log(0.1))
assert "logit_shift" not in read("sampled")
for name in "test", "sampled_test", "sampled":
    assert abs(read(name)["calibration"] - 1) < 0.1, (name, read(name))
loss = lambda p: -np.where(label > 0.5, np.log(p), np.log1p(-p)).mean()
assert abs(read("test")["log_loss"] - loss(score)) < 1e-5
assert read("test")["log_loss"] < loss(uncorrected) - 0.05
last = [json.loads(line) for line in open("run/metrics.jsonl")][-1]
assert last["eval/loss"] == read("test")["log_loss"], last
PY
# The groups of eval, and several workers, see the same logits.
$renzan eval run --data test --json --workers 2 | cmp - test.json || fail "two workers"
$renzan eval run --data test --json --group-by shop >groups.json
python3 -c 'import json
grouped, plain = json.load(open("groups.json")), json.load(open("test.json"))
grouped.pop("group_by")
assert grouped == plain, (grouped, plain)' || fail "groups"
$renzan predict run --data test --output scores2.npy --workers 2 2>/dev/null
cmp scores.npy scores2.npy || fail "two workers predict something else"

# Data that somebody else has downsampled.
(echo "negatives_kept: 0.2"; cat plain.yaml) >before.yaml
import test.csv --schema before.yaml --vocabulary-from sampled --output before >/dev/null
expect_exit 0 "logit shift         -0.6931" $renzan eval run --data before
grep -q "negatives kept: 0.2" <<<"$($renzan data inspect before)" || fail "inspect does not say it"
expect_exit 78 "features.negatives_kept is 0.5, but sampled records 0.1" \
  $renzan train small.yaml --run-dir none --set features.negatives_kept=0.5

# Weights, pos_weight and smoothing: one model on any number of workers, also after a stop.
import train.csv --schema schema.yaml --vocabulary threshold:1 --output weighted >import.txt
grep -q "^weight 'w': mean [01]\.[0-9]*, from 0 to 2.5" import.txt || fail "$(cat import.txt)"
import test.csv --schema schema.yaml --vocabulary-from weighted --output weighted_test >/dev/null
options=(--set data.train.path=weighted --set data.eval.path=weighted_test
  --set training.epochs=1 --set training.loss.label_smoothing=0.05)
$renzan train small.yaml --run-dir one "${options[@]}" --set training.loss.pos_weight=4 2>train.txt
grep -q "loss: samples weighted by 'w' (mean .*), positives by 4, labels smoothed by 0.05; the \
metrics of steps count every sample once" train.txt || fail "$(cat train.txt)"
grep -q "; weighted: AUC 0.[0-9]*, log loss 0.[0-9]*" train.txt || fail "$(cat train.txt)"
grep -q "evaluations on weighted_test count every sample once, and as much as its 'w'$" train.txt ||
  fail "$(cat train.txt)"
$renzan train small.yaml --run-dir several "${options[@]}" --set training.loss.pos_weight=4 \
  --workers 3 --set training.max_steps=300 2>/dev/null
$renzan train small.yaml --run-dir several "${options[@]}" --set training.loss.pos_weight=4 \
  --workers 2 2>/dev/null
[ "$(sha256_of one)" = "$(sha256_of several)" ] || fail "another model on several workers"
expect_exit 78 "training.loss.pos_weight is 4.0 there and 5.0 here" $renzan train small.yaml \
  --run-dir one "${options[@]}" --set training.loss.pos_weight=5
expect_exit 64 "cannot be changed after training" $renzan eval one --data weighted_test \
  --set training.loss.pos_weight=5
for setting in training.loss.pos_weight=4 training.loss.label_smoothing=0.05; do
  expect_exit 78 "device: cuda does not support ${setting%=*}" $renzan plan small.yaml \
    --set device=cuda --set model.embedding_dim=8 --set $setting
done
expect_exit 78 "device: cuda does not support training data with sample weights" \
  $renzan plan small.yaml --set device=cuda --set model.embedding_dim=8 "${options[@]}" \
  --set training.loss.label_smoothing=0

# Weights that act as a learning rate are blamed for what they do.
head -20000 train.csv | sed '2,$s/,\([0-9.]*\),/,\1e9,/' >heavy.csv
import heavy.csv --schema schema.yaml --vocabulary threshold:1 --output heavy >import.txt 2>&1
grep -q "the mean of the weights 'w' is .*: it multiplies all gradients" import.txt ||
  fail "$(cat import.txt)"
expect_exit 70 "the mean of the weights 'w' is" $renzan train small.yaml --run-dir heavy_run \
  --set data.train.path=heavy --set data.eval.path=heavy

# Weighted scores are scikit-learn's with sample_weight; the others count every row once.
$renzan eval one --data weighted_test --json >weighted.json
$renzan eval one --data weighted_test --json --workers 2 | cmp - weighted.json || fail "two workers"
$renzan eval one --data weighted_test --json --group-by shop >groups.json
$renzan predict one --data weighted_test --output weighted.npy 2>/dev/null
expect_exit 0 "rows weighted by 'w'" $renzan eval one --data weighted_test
python3 - <<'PY' || fail "different from numpy"
import json, numpy as np
found = json.load(open("weighted.json"))
y, w = (np.load(f"weighted_test/shard-00000/{name}.npy").astype(float) for name in ("label", "weight"))
p = np.load("weighted.npy").astype(float)
def scores(w):
    loss = -w * np.where(y > 0.5, np.log(p), np.log1p(-p))
    positive, negative = (np.bincount(np.unique(p, return_inverse=True)[1], w * (y == label))
                          for label in (1, 0))
    below = np.cumsum(negative) - negative
    return {"auc": (positive * (below + negative / 2)).sum() / positive.sum() / negative.sum(),
            "log_loss": loss.sum() / w.sum(), "calibration": (w * p).sum() / (w * y).sum(),
            "accuracy": (w * ((p > 0.5) == (y > 0.5))).sum() / w.sum()}
for got, w in (found, np.ones_like(w)), (found["weighted"], w):
    for name, value in scores(w).items():
        assert abs(got[name] - value) < (1e-3 if name == "auc" else 1e-5), (name, got, value)
assert found["weighted"]["column"] == "w" and abs(found["weighted"]["sum_of_weights"] - w.sum()) < 1e-6
assert found["weighted"]["log_loss"] != found["log_loss"]
grouped = json.load(open("groups.json"))
groups = grouped.pop("group_by")
assert grouped == found, (grouped, found)
# The same for each group, and the mean of their AUCs by weight.
shop = np.load("weighted_test/shard-00000/ids.npy")[:, 0]
all_y, all_w, all_p, ranked = y, w, p, []
assert groups["groups"] == len(groups["largest"]) == 20, groups
for group in groups["largest"]:
    y, w, p = (column[shop == group["id"]] for column in (all_y, all_w, all_p))
    expected = scores(w)
    for name in "auc", "log_loss", "calibration":
        assert abs(group["weighted"][name] - expected[name]) < 1e-5, (name, group, expected)
    assert group["weighted"]["sum_of_weights"] == w.sum()
    ranked.append((expected["auc"], w.sum()))
aucs, weights = np.array(ranked).T
assert abs(groups["weighted"]["group_auc"] - (aucs * weights).sum() / weights.sum()) < 1e-5
assert groups["weighted"]["group_auc"] != groups["group_auc"]
PY
expect_exit 0 "weighted AUC" $renzan eval one --data weighted_test --group-by shop
grep -q "^weighted  *0\.[0-9]*  (by 'w')$" out.txt || fail "$(cat out.txt)"

# Early stopping and keep_best compare the weighted metrics: here those of positives that weigh as much
# as the many negatives, whose loss grows while that of all rows falls.
awk -F, -v OFS=, 'NR > 1 { $2 = $1 ? 1 : 0.03 } 1' test.csv >balanced.csv
import balanced.csv --schema schema.yaml --vocabulary-from weighted --output balanced >/dev/null
$renzan train small.yaml --run-dir best --set data.train.path=weighted --workers 2 \
  --set data.eval.path=balanced --set training.epochs=1 --set training.eval_every=20 \
  --set training.keep_best=true --set training.group_by=shop 2>best.txt
grep -q "as much as its 'w', which early_stopping and keep_best compare$" best.txt ||
  fail "$(cat best.txt)"
grep -q "the model is the one of step .*, with the best weighted log_loss" best.txt ||
  fail "$(cat best.txt)"
$renzan eval best --group-by shop --json >of_best.json 2>/dev/null
python3 - <<'PY' || fail "not the best weighted evaluation"
import json
lines = [json.loads(line) for line in open("best/metrics.jsonl")]
evaluations = [line for line in lines if "eval/weighted/loss" in line]
best = {key: min(evaluations, key=lambda line: line[key])["step"]
        for key in ("eval/loss", "eval/weighted/loss")}
print(best)
assert len(evaluations) > 10 and best["eval/loss"] != best["eval/weighted/loss"], best
assert json.load(open("best/model/manifest.json"))["step"] == best["eval/weighted/loss"], best
(kept,) = (line for line in evaluations if line["step"] == best["eval/weighted/loss"])
groups = json.load(open("of_best.json"))["group_by"]
assert kept["eval/group_auc"] == groups["group_auc"], (kept, groups)
assert kept["eval/weighted/group_auc"] == groups["weighted"]["group_auc"], (kept, groups)
assert groups["group_auc"] != groups["weighted"]["group_auc"], groups
PY
