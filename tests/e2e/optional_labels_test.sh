# Several labels of which rows may lack any, the first included, from end to end: imported; trained
# to PyTorch's losses, with the same sha256 for any workers, threads, backends and stops; evaluated
# over the rows that have each, predicted, split and inspected; and refused where a row has none.
source "$(dirname "$0")/lib.sh" "$@"
golden=$source_root/tests/golden/labels
python3 "$golden/visits.py" >visits.csv
import() {  # NAME FILE MORE...
  local name=$1 file=$2
  shift 2
  $renzan data import --format csv --schema "$golden/schema.yaml" --output $name $file "$@" >out.txt \
    2>log.txt || fail "$(cat log.txt)"
}
import visits visits.csv
clicks=$(awk -F, 'NR > 1 && $1 != ""' visits.csv | wc -l)
bought=$(awk -F, 'NR > 1 && $2 != ""' visits.csv | wc -l)
[ $clicks -lt 640 ] && [ $bought -lt 640 ] || fail "every row has the labels"
grep -q "^label 'click': 1 in [0-9]* of $clicks rows" out.txt &&
  grep -q "^label 'buy': 1 in [0-9]* of $bought rows" out.txt || fail "$(cat out.txt)"
grep -q "^format_version: 10$" visits/dataset.yaml || fail "$(cat visits/dataset.yaml)"
$renzan data verify visits >/dev/null
$renzan data inspect visits | grep -q "label 'click' with rate 0.[0-9]* in $clicks of them" ||
  fail "$($renzan data inspect visits)"
$renzan data inspect visits --json | python3 -c "
import json, sys
out = json.load(sys.stdin)
assert out['labelled_rows'] == $clicks and 0 < out['label_rate'] < 1, out"

train() {  # RUN MORE...
  local run=$1
  shift
  $renzan train "$golden/mmoe.yaml" --run-dir $run "$@" 2>log.txt || fail "$(cat log.txt)"
}
train mmoe --workers 1 --threads 1 --backend local
python3 - "$golden/mmoe.json" mmoe/metrics.jsonl <<'PYTHON'
import json, sys
for output, expected in json.load(open(sys.argv[1]))["losses"].items():
    losses = [json.loads(line)[f"train/{output}/loss"] for line in open(sys.argv[2])]
    assert len(losses) == len(expected) == 10, losses
    assert max(abs(a - b) for a, b in zip(losses, expected)) < 2e-6, (output, losses, expected)
PYTHON
without_times() { sed 's/"time":[^,]*,//; s/"train.samples_per_second":[^,}]*//' "$1/metrics.jsonl"; }
for how in "--workers 2 --threads 1 --backend gloo" "--workers 3 --threads 2 --backend mpi"; do
  # shellcheck disable=SC2086
  train many $how --set training.max_steps=4
  train many --workers 4 --threads 1
  [ "$(sha256_of many)" = "$(sha256_of mmoe)" ] || fail "other bits with $how"
  cmp <(without_times many) <(without_times mmoe) || fail "$how: a resumed run reports other metrics"
  rm -r many
done

# Each output is measured on the rows that have its label.
$renzan eval mmoe --data visits --json >one.json 2>log.txt || fail "$(cat log.txt)"
$renzan eval mmoe --data visits --json --workers 2 >two.json 2>log.txt || fail "$(cat log.txt)"
cmp one.json two.json || fail "two workers measure something else"
$renzan predict mmoe --data visits --output scores.csv --with click,buy 2>log.txt ||
  fail "$(cat log.txt)"
python3 - <<'PYTHON'
import csv, json, math
rows = list(csv.DictReader(open("scores.csv")))
given = list(csv.DictReader(open("visits.csv")))
for label in "click", "buy":
    assert [row[label] for row in rows] == [row[label] for row in given], label
    known = [(float(row["score_" + label]), row[label] == "1") for row in rows if row[label]]
    measured = json.load(open("one.json"))["outputs"][label]
    assert measured["rows"] == len(known), (label, measured)
    loss = -sum(math.log(score if is_one else 1 - score) for score, is_one in known) / len(known)
    assert abs(measured["log_loss"] - loss) < 1e-5, (label, measured, loss)
    pairs = [(a > b) + (a == b) / 2 for a, x in known if x for b, y in known if not y]
    # AUC is that of scores in bins.
    assert abs(measured["auc"] - sum(pairs) / len(pairs)) < 1e-3, (label, measured)
    shown = sum(score for score, _ in known) / sum(is_one for _, is_one in known)
    assert abs(measured["calibration"] - shown) < 1e-5, (label, measured, shown)
PYTHON
$renzan eval mmoe --data visits --group-by item >eval.txt 2>log.txt || fail "$(cat log.txt)"
[ "$(grep -c "group AUC" eval.txt)" = 2 ] || fail "$(cat eval.txt)"
# A model of one output learns from the first label, and evaluations on it decide which is best.
train first --set data.eval.path=visits --set training.eval_every=2 --set training.keep_best=true \
  --set "model={type: deepfm, embedding_dim: 8}"
grep -q "the best so far" log.txt || fail "$(cat log.txt)"
$renzan eval first --data visits --json 2>log.txt | python3 -c "
import json, sys
assert json.load(sys.stdin)['rows'] == $clicks" || fail "$(cat log.txt)"
# Both sets of a split may lack it.
import split visits.csv --split random:0.3
for part in train test; do
  grep -q "^label_optional: true$" split/$part/dataset.yaml || fail "$(cat split/$part/dataset.yaml)"
done
train on_split --set data.train.path=split/train --set data.eval.path=split/test

# A label that is the same in all rows that have it is told; nothing learns from a row without any.
awk -F, 'NR == 1 || $1 != "0"' visits.csv >ones.csv
import ones ones.csv
grep -q "the label 'click' is 1 in every row that has it" log.txt || fail "$(cat log.txt)"
awk -F, -v OFS=, 'NR == 1 { print } NR > 1 && $2 != "" { $1 = ""; print }' visits.csv >unknown.csv
import unknown unknown.csv
grep -q "no row has the label 'click'" log.txt && grep -q "label 'click': 1 in 0 of 0 rows (0 %)" out.txt ||
  fail "$(cat log.txt out.txt)"
$renzan data inspect unknown >out.txt && grep -q "label 'click', which none of them has" out.txt || fail "$(cat out.txt)"
{ cat visits.csv; echo ",,u1,i1,0.5"; } >none.csv
expect_exit 65 "none.csv:642: has none of the labels click, buy" $renzan data import --format csv \
  --schema "$golden/schema.yaml" --output bad none.csv
[ ! -e bad ] || fail "a dataset was left behind"
import skipped none.csv --on-bad-row skip
cmp skipped/shard-00000/label.npy visits/shard-00000/label.npy || fail "other rows were skipped"
sed '/buy/d' "$golden/schema.yaml" >only.yaml
expect_exit 78 "'click' with optional: true, but it is the only label" $renzan data import \
  --format csv --schema only.yaml --output bad visits.csv
sed 's/click: {role: label, optional: true}/click: {role: label}/' "$golden/schema.yaml" >strict.yaml
expect_exit 65 "'optional: true' in the schema allows rows without this label" $renzan data import \
  --format csv --schema strict.yaml --output bad visits.csv
expect_exit 64 "scores can be corrected only with one" $renzan data import --format csv \
  --schema "$golden/schema.yaml" --keep-negatives 0.5 --output bad visits.csv
