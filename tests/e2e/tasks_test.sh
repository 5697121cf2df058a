# Several labels from end to end: imported, one of them missing from some rows; trained by models of
# several tasks to PyTorch's losses, with the same sha256 for any workers and kills; evaluated for
# each output, asked for all predictions; and refused where a task has no label.
source "$(dirname "$0")/lib.sh" "$@"
golden=$source_root/tests/golden/tasks
python3 "$golden/shop.py" >shop.csv
$renzan data import --format csv --schema "$golden/schema.yaml" --output shop shop.csv >out.txt \
  2>log.txt || fail "$(cat log.txt)"
grep -q "label 'buy': 1 in [0-9]* of 5[0-9]* rows" out.txt || fail "$(cat out.txt)"
grep -q "format_version: 7" shop/dataset.yaml || fail "another version: $(cat shop/dataset.yaml)"
$renzan data verify shop >/dev/null
$renzan data inspect shop | grep -q "label 'buy': 1 in" || fail "inspect lacks the label"
for type in mmoe ple esmm; do
  $renzan train "$golden/$type.yaml" --workers 1 --run-dir $type 2>log.txt || fail "$(cat log.txt)"
  python3 - "$golden/$type.json" $type/metrics.jsonl <<'PYTHON'
import json, sys
for output, expected in json.load(open(sys.argv[1]))["losses"].items():
    losses = [json.loads(line)[f"train/{output}/loss"] for line in open(sys.argv[2])]
    assert len(losses) == len(expected) == 10, losses
    assert max(abs(a - b) for a, b in zip(losses, expected)) < 2e-6, (output, losses, expected)
PYTHON
  for workers in 2 3; do
    $renzan train "$golden/$type.yaml" --workers $workers --run-dir many \
      --set training.max_steps=4 2>log.txt || fail "$(cat log.txt)"
    $renzan train "$golden/$type.yaml" --workers 4 --run-dir many 2>log.txt ||
      fail "$(cat log.txt)"
    [ "$(sha256_of many)" = "$(sha256_of $type)" ] || fail "$type: other bits with $workers workers"
    cmp <(sed 's/"time":[^,]*,//; s/"train.samples_per_second":[^,}]*//' many/metrics.jsonl) \
      <(sed 's/"time":[^,]*,//; s/"train.samples_per_second":[^,}]*//' $type/metrics.jsonl) ||
      fail "$type: a resumed run reports other metrics"
    rm -r many
  done
  # The graph as a user copies it.
  { sed '/^model:/,/^training:/ {/^training:/!d}' "$golden/$type.yaml"
    $renzan train --print-config "$golden/$type.yaml" | sed -n '/^# model:/,$ s/^# //p'; } \
    >blocks.yaml
  $renzan train blocks.yaml --run-dir $type.blocks 2>log.txt || fail "$(cat log.txt)"
  [ "$(sha256_of $type.blocks)" = "$(sha256_of $type)" ] || fail "$type: other bits as blocks"
  $renzan train blocks.yaml --run-dir $type.started --initialize-from $type --set training.max_steps=0 \
    2>log.txt || fail "$(cat log.txt)"
  $renzan eval $type --data shop --json >$type.json 2>log.txt || fail "$(cat log.txt)"
  $renzan eval $type --data shop --group-by item >eval.txt 2>log.txt || fail "$(cat log.txt)"
  [ "$(grep -c "group AUC" eval.txt)" = 2 ] || fail "$(cat eval.txt)"
  for format in csv npy parquet; do
    $renzan predict $type --data shop --output $type.$format 2>log.txt || fail "$(cat log.txt)"
  done
done
# Going on with another label is said.
for label in click buy; do
  $renzan train "$golden/mmoe.yaml" --run-dir from_$label --set "model={type: lr, \
outputs: {out: {label: $label}}}" $([ $label = click ] || echo --initialize-from from_click) \
    2>log.txt || fail "$(cat log.txt)"
  grep -q "learned from the label 'click', and now learns from 'buy'" log.txt && warned=1 || warned=0
  [ $warned = $([ $label = buy ] && echo 1 || echo 0) ] || fail "$label: $(cat log.txt)"
done
# Labels are those of rows that have them; a product is at most its factors.
python3 - <<'PYTHON'
import csv, json
rows = list(csv.DictReader(open("shop.csv")))
evaluated = json.load(open("mmoe.json"))["outputs"]
assert evaluated["click"]["rows"] == 640, evaluated
assert evaluated["buy"]["rows"] == sum(row["buy"] != "" for row in rows), evaluated
assert evaluated["click"]["auc"] > 0.5 < evaluated["buy"]["auc"], evaluated
assert list(json.load(open("esmm.json"))["outputs"]) == ["ctcvr", "ctr"]
scores = list(csv.DictReader(open("esmm.csv")))
assert list(scores[0]) == ["score_ctcvr", "score_ctr", "score_cvr"], scores[0]
for row in scores:
    both, click, after = (float(row["score_" + name]) for name in ("ctcvr", "ctr", "cvr"))
    assert abs(both - click * after) < 1e-6, row
PYTHON

# The output that decides about the best model is named.
mmoe() {  # MORE
  rm -rf other
  $renzan train "$golden/mmoe.yaml" --run-dir other --set training.eval_every=2 "$@"
}
expect_exit 78 "training.early_stopping.output: several outputs are evaluated, so it must say which \
decides; name one of buy, click" mmoe --set data.eval.path=shop --set training.keep_best=true
expect_exit 78 "'bye' is no output that has a label; name one of buy, click" mmoe \
  --set data.eval.path=shop --set training.keep_best=true --set training.early_stopping.output=bye
mmoe --set data.eval.path=shop --set training.early_stopping.output=buy \
  --set training.early_stopping.metric=auc --set training.early_stopping.patience=3 2>log.txt ||
  fail "$(cat log.txt)"
grep -q "eval at step 2: buy: AUC" log.txt && grep -q "eval at step 2: click: AUC" log.txt ||
  fail "$(cat log.txt)"
# The order of labels in other data does not matter; data without one of them are refused before a
# step is trained.
python3 - <<'PYTHON'
lines = [line.rstrip("\n").split(",") for line in open("shop.csv")]
with open("swapped.csv", "w") as file:
    for click, buy, *rest in lines:
        file.write(",".join([buy or "0", click, *rest]) + "\n")
PYTHON
printf 'columns:\n  buy: {role: label}\n  click: {role: label}\n' >swapped.yaml
sed -n '/user:/,$p' "$golden/schema.yaml" >>swapped.yaml
$renzan data import --format csv --schema swapped.yaml --vocabulary-from shop --output swapped \
  swapped.csv >/dev/null 2>log.txt || fail "$(cat log.txt)"
$renzan train "$golden/mmoe.yaml" --run-dir first --set "model={type: deepfm, embedding_dim: 8}" \
  2>log.txt || fail "$(cat log.txt)"
for run in first mmoe; do
  $renzan eval $run --data shop --json >straight.json 2>log.txt || fail "$(cat log.txt)"
  $renzan eval $run --data swapped --json >swapped.json 2>log.txt || fail "$(cat log.txt)"
  $renzan eval $run --data swapped --json --workers 2 >two.json 2>log.txt || fail "$(cat log.txt)"
  cmp swapped.json two.json || fail "$run: two workers measure something else"
  python3 - $run <<'PYTHON' || fail "$run: another label was measured"
import json, sys
straight, swapped = (json.load(open(name + ".json")) for name in ("straight", "swapped"))
if sys.argv[1] == "mmoe":
    straight, swapped = straight["outputs"]["click"], swapped["outputs"]["click"]
assert straight == swapped, (straight, swapped)
PYTHON
done
sed '/buy/d' "$golden/schema.yaml" >clicks.yaml
cut -d, -f1,3- shop.csv >clicks.csv
$renzan data import --format csv --schema clicks.yaml --vocabulary-from shop --output clicks \
  clicks.csv >/dev/null 2>log.txt || fail "$(cat log.txt)"
expect_exit 78 "clicks has no label 'buy', which the model learns from; it has click" mmoe \
  --set data.eval.path=clicks
[ ! -e other/metrics.jsonl ] || fail "it was trained first"
expect_exit 78 "has no label 'buy'" $renzan eval mmoe --data clicks
$renzan predict mmoe --data clicks --output clicks_scores.csv --workers 2 2>log.txt ||
  fail "$(cat log.txt)"
cmp clicks_scores.csv mmoe.csv || fail "other scores without a label, or with two workers"
# One output may learn from any label.
$renzan train "$golden/mmoe.yaml" --run-dir single \
  --set "model={type: deepfm, embedding_dim: 8, outputs: {buy: {}}}" 2>log.txt ||
  fail "$(cat log.txt)"
$renzan eval single --data shop >eval.txt 2>log.txt || fail "$(cat log.txt)"
grep -q "^rows *5[0-9]*$" eval.txt || fail "rows without the label count: $(cat eval.txt)"
expect_exit 78 "the training data have no label 'cart', but click, buy" mmoe \
  --set "model.outputs={cart: {}}"
expect_exit 78 "esmm learns conversions from the output ctcvr" mmoe \
  --set "model={type: esmm, outputs: {ctr: {label: click}}}"
expect_exit 78 "the training data have no label 'cart'" $renzan plan "$golden/mmoe.yaml" \
  --set "model.outputs={cart: {}}"
expect_exit 78 "because the model has only one: leave it out" mmoe --set data.eval.path=shop \
  --set "model={type: deepfm}" --set training.early_stopping.output=click
expect_exit 78 "model.outputs are 2, but model.type: deepfm has one" mmoe \
  --set "model={type: deepfm, outputs: {click: {}, buy: {}}}"
expect_exit 78 "need at least one with a loss" mmoe --set "model={type: mmoe, outputs: {a: {loss: none}}}"
$renzan data synth --format dataset --seed 4 --rows 200 --output one_label >/dev/null
expect_exit 78 "esmm learns from two labels, the click and the conversion" \
  $renzan train "$golden/esmm.yaml" --run-dir other --set data.train.path=one_label

# Labels of the schema.
sed 's/, optional: true//' "$golden/schema.yaml" >strict.yaml
expect_exit 65 "'optional: true' in the schema allows rows without this label" \
  $renzan data import --format csv --schema strict.yaml --output bad shop.csv
expect_exit 64 "scores can be corrected only with one" $renzan data import --format csv \
  --schema "$golden/schema.yaml" --keep-negatives 0.5 --output bad shop.csv
[ ! -e bad ] || fail "a dataset was left behind"
# Data for predictions has no labels; with one of them it is refused.
cut -d, -f3- shop.csv >unlabelled.csv
$renzan data import --format csv --schema "$golden/schema.yaml" --vocabulary-from shop \
  --output unlabelled unlabelled.csv >/dev/null 2>log.txt || fail "$(cat log.txt)"
$renzan predict esmm --data unlabelled --output scores.csv 2>log.txt || fail "$(cat log.txt)"
cmp scores.csv esmm.csv || fail "other scores without labels"
cut -d, -f2- shop.csv >half.csv
expect_exit 78 "the input has the label 'buy', but not 'click'" $renzan data import --format csv \
  --schema "$golden/schema.yaml" --vocabulary-from shop --output half half.csv
