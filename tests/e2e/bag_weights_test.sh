# Bags whose values have weights, from end to end: imported from CSV, trained to PyTorch's losses
# with the same sha256 for any workers, threads, shardings, codecs and stops, evaluated and asked for
# predictions; and refused where data and model do not agree, and where nothing would take them.
source "$(dirname "$0")/lib.sh" "$@"
golden=$source_root/tests/golden/bags
python3 "$golden/reads.py" >reads.csv
import() {  # SCHEMA OUTPUT MORE...
  $renzan data import --format csv --schema "$1" --output "$2" "${@:3}" >/dev/null 2>log.txt ||
    fail "$(cat log.txt)"
}
import "$golden/schema.yaml" reads reads.csv
grep -q "format_version: 9" reads/dataset.yaml || fail "another version: $(cat reads/dataset.yaml)"
$renzan data verify reads >/dev/null
$renzan data inspect reads >out.txt
grep -q "weights 'relevance' of 'tags': mean 0.[0-9]*, from -0.3 to 1.498$" out.txt || fail "$(cat out.txt)"
$renzan data inspect reads --json | python3 -c '
import json, sys
features = {f["name"]: f for f in json.load(sys.stdin)["features"]}
assert features["topics"]["weights"]["name"] == "seconds", features["topics"]
assert features["topics"]["weights"]["max"] == 90 and "weights" not in features["likes"], features'

train() {  # RUN MORE...
  local run=$1
  shift
  $renzan train "$golden/deepfm.yaml" --run-dir $run "$@" 2>log.txt || fail "$(cat log.txt)"
}
train one --workers 1 --threads 1
python3 - "$golden/deepfm.json" one/metrics.jsonl <<'PYTHON'
import json, sys
expected = json.load(open(sys.argv[1]))["losses"]
losses = [json.loads(line)["train/loss"] for line in open(sys.argv[2])]
assert len(losses) == len(expected) == 10, losses
assert max(abs(a - b) for a, b in zip(losses, expected)) < 2e-6, (losses, expected)
PYTHON
for sharding in table_wise replicated; do
  train many --workers 2 --set sharding.default=$sharding --set training.max_steps=4
  train many --workers 3 --threads 2 --set sharding.default=$sharding
  [ "$(sha256_of many)" = "$(sha256_of one)" ] || fail "other bits when $sharding"
  rm -r many
done
# Blocks of rows and columns, 8 and 16 bits on the wire, an optimizer with one state for a row.
blocks=(--set numerics.row_blocks=4 --set numerics.column_blocks=3 --set comm.forward=int8
  --set comm.backward=fp16 --set optimizer.sparse.type=rowwise_adagrad)
train blocks1 --workers 1 "${blocks[@]}"
for sharding in row_wise column_wise; do
  train blocks3 --workers 3 "${blocks[@]}" --set sharding.default=$sharding
  [ "$(sha256_of blocks1)" = "$(sha256_of blocks3)" ] || fail "other bits when $sharding"
  rm -r blocks3
done
$renzan plan "$golden/deepfm.yaml" --workers 2 >plan.txt 2>&1 || fail "$(cat plan.txt)"

# Scores depend on the weights, with which a test set is imported like any other column.
head -101 reads.csv >test.csv
import "$golden/schema.yaml" test --vocabulary-from reads test.csv
python3 -c '
import csv, sys
rows = list(csv.reader(open("test.csv")))
for row in rows[1:]:
    row[0] = "|".join("0" for _ in row[0].split("|")) if row[0] else ""
csv.writer(open("zeros.csv", "w")).writerows(rows)'
import "$golden/schema.yaml" zeros --vocabulary-from reads zeros.csv
for data in test zeros; do
  $renzan eval one --data $data >/dev/null 2>log.txt || fail "$(cat log.txt)"
  $renzan predict one --data $data --output scores_$data.csv 2>log.txt || fail "$(cat log.txt)"
  [ "$(wc -l <scores_$data.csv)" -ge 100 ] || fail "$(head -3 scores_$data.csv)"
done
cmp -s scores_test.csv scores_zeros.csv && fail "weights of 0 change no score"
$renzan predict one --data test --output two.csv --workers 2 2>log.txt || fail "$(cat log.txt)"
cmp two.csv scores_test.csv || fail "two workers predict something else"

# A model of weights needs them, and another one must not have them.
sed 's/role: bag_weights, bag: [a-z]*/role: skip/' "$golden/schema.yaml" >plain.yaml
import plain.yaml plain reads.csv
grep -q "format_version: 6" plain/dataset.yaml || fail "another version without weights"
train plain_run --set data.train.path=plain
expect_exit 78 "the weights of 'tags' are none, but in the training data those of column 'relevance'" \
  $renzan eval one --data plain
expect_exit 78 "the weights of 'tags' are those of column 'relevance', but in the training data none" \
  $renzan predict plain_run --data reads --output never.csv
expect_exit 78 "another" $renzan train "$golden/deepfm.yaml" --run-dir one --set data.train.path=plain \
  --set training.epochs=2
expect_exit 78 "model.tables.tags.pooling: mean divides by the sum of the weights, but weights of 'tags'" \
  $renzan train "$golden/deepfm.yaml" --run-dir never --set model.tables.tags.pooling=mean
expect_exit 78 "weights of feature 'tags' are 'relevance'" $renzan data import --format csv \
  --schema plain.yaml --output never --vocabulary-from reads reads.csv
expect_exit 78 "features.weights must be empty but for features of multi_hot" $renzan plan \
  "$golden/deepfm.yaml" --set data.train.path= \
  --set 'features={categorical: [a], num_embeddings: [9], weights: [w]}'
$renzan plan "$golden/deepfm.yaml" --set data.train.path= --set 'model.tables={}' \
  --set 'features={dense: [d], categorical: [a], num_embeddings: [9], multi_hot: [a], weights: [w]}' \
  >plan.txt 2>&1 || fail "$(cat plan.txt)"
# A row whose weights are not as many as its values.
sed '5s/^[^,]*/1|2|3|4|5|6|7|8/' reads.csv >bad.csv
expect_exit 65 "'relevance' has 8 weights; fix the row" $renzan data import --format csv \
  --schema "$golden/schema.yaml" --output never bad.csv
[ ! -e never ] || fail "something was written"
