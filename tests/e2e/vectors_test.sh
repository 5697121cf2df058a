# Embeddings made elsewhere, and numbers that become categories, from end to end: imported, trained
# to one sha256 for any workers and kills, evaluated, and written beside the predictions.
source "$(dirname "$0")/lib.sh" "$@"
python3 - <<'PY'
import random
random.seed(7)
for name, rows in ("train.csv", 4200), ("test.csv", 300):
    with open(name, "w") as out:
        out.write("id,y,text,age,item\n")
        for row in range(rows):
            text = [random.gauss(0, 1) for _ in range(6)]
            y = int(text[2] + random.gauss(0, 0.5) > 0)
            field = "|".join(f"{x:.4f}" for x in text) if row % 50 else ""
            if name == "test.csv" and row % 40 == 7: field = field.rpartition("|")[0]
            out.write(f"{row},{y},{field},{row % 70},i{row % 9}\n")
PY
cat >schema.yaml <<'YAML'
columns:
  id: {role: key}
  y: {role: label}
  text: {role: dense, dimension: 6, transform: standardize}
  age: {role: categorical, buckets: [18, 40, 65]}
  item: {role: categorical}
YAML
import_with() { $renzan data import --format csv --schema schema.yaml "$@"; }
import_with --vocabulary threshold:1 --output train train.csv 2>log.txt >/dev/null || fail "$(cat log.txt)"
expect_exit 65 "test.csv:9: column 3 (text): a vector of 5 numbers, but dimension is 6" \
  import_with --vocabulary-from train --output test test.csv
import_with --vocabulary-from train --on-bad-row skip --output test test.csv >log.txt 2>&1 ||
  fail "$(cat log.txt)"
grep -q "format_version: 7" train/dataset.yaml || fail "another version: $(head -1 train/dataset.yaml)"
$renzan data verify train >/dev/null
expect_exit 0 "text     vector" $renzan data inspect train
expect_exit 0 "[18, 40): 31.1%" $renzan data inspect train

small_config train
sed -i "s|training: {|training: {epochs: 12, |" small.yaml
$renzan train small.yaml --run-dir one 2>log.txt || fail "$(cat log.txt)"
python3 - one/metrics.jsonl <<'PY' || fail "vectors teach the model nothing"
import json, sys
auc = [json.loads(line).get("eval/auc") for line in open(sys.argv[1])]
assert max(value for value in auc if value is not None) > 0.85, auc
PY
$renzan train small.yaml --workers 3 --run-dir many --set training.max_steps=40 2>log.txt ||
  fail "$(cat log.txt)"
$renzan train small.yaml --workers 2 --run-dir many 2>log.txt || fail "$(cat log.txt)"
[ "$(sha256_of one)" = "$(sha256_of many)" ] || fail "other bits with other workers"
expect_exit 0 "[40, 65) " $renzan eval one --data test --group-by age

# Beside the scores, with the keys of rows that were skipped left out.
$renzan predict one --data test --with id,text,age --output scores.csv 2>log.txt ||
  fail "$(cat log.txt)"
$renzan predict one --data test --output scores.npy 2>/dev/null
python3 - <<'PY' || fail "scores do not join the input"
import csv, numpy
scores, arrays = list(csv.DictReader(open("scores.csv"))), numpy.load("scores.npy")
inputs = {row["id"]: row for row in csv.DictReader(open("test.csv"))}
kept = [name for name, row in inputs.items() if row["text"].count("|") in (5, 0)]
assert [row["id"] for row in scores] == kept and len(kept) < len(inputs), len(kept)
assert list(scores[0]) == ["id", *(f"text.{i}" for i in range(6)), "age", "score"]
assert numpy.array_equal(numpy.float32([row["score"] for row in scores]), arrays)
for row in scores:
    texts = inputs[row["id"]]["text"].split("|")
    if texts == [""]:
        assert all(row[f"text.{i}"] == "0" for i in range(6)), row
    age = int(inputs[row["id"]]["age"])
    assert row["age"] == ("(-inf, 18)" if age < 18 else "[18, 40)" if age < 40 else
                          "[40, 65)" if age < 65 else "[65, inf)"), row
# The transform is one line for each number.
pairs = [(float(inputs[row["id"]]["text"].split("|")[3]), float(row["text.3"]))
         for row in scores if inputs[row["id"]]["text"]]
slope, cut = numpy.polyfit(*zip(*pairs), 1)
assert max(abs(slope * x + cut - y) for x, y in pairs) < 1e-4
PY
expect_exit 64 "has no such column (did you mean 'text.1'?)" \
  $renzan predict one --data test --with texts.1 --output no.csv
expect_exit 64 "has no such column (did you mean 'text'?); it has id, y, text, age, item, input_row" \
  $renzan predict one --data test --with texts --output no.csv
expect_exit 64 "--with text.3: the column is named twice" \
  $renzan predict one --data test --with text,text.3 --output no.csv
expect_exit 64 "--group-by text: this is a vector of dense features" \
  $renzan eval one --data test --group-by text
sed 's/dimension: 6/dimension: 2/; s/^  id: /  text.0: /' schema.yaml >clash.yaml
printf '%s\n' text.0,y,text,age,item '7,1,0.5|2,3,i1' >clash.csv
expect_exit 78 "the key 'text.0' has the name of a number of the vector 'text'" \
  $renzan data import --format csv --schema clash.yaml --output clash clash.csv
$renzan predict one --data test --with text,id --output fields.npy 2>/dev/null
python3 - <<'PY' || fail "a structured array has other numbers"
import csv, numpy
rows, array = list(csv.DictReader(open("scores.csv"))), numpy.load("fields.npy")
assert array.dtype.names == tuple(f"text.{i}" for i in range(6)) + ("id", "score")
assert (array["score"] == numpy.load("scores.npy")).all()
PY

# Data whose vectors have another length are another model's.
sed 's/dimension: 6/dimension: 5/' schema.yaml >short.yaml
awk -F, 'NR == 1 || !/^[0-9]+,[01],[^,]*\|/ {print; next} {OFS = ","; sub(/\|[^|]*$/, "", $3); print}' \
  train.csv >short.csv
$renzan data import --format csv --schema short.yaml --vocabulary threshold:1 --output short short.csv \
  >/dev/null 2>log.txt || fail "$(cat log.txt)"
expect_exit 78 "the training data has the dense feature 'text.5', this dataset does not" $renzan eval one --data short
