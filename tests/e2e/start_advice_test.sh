# What a run says before it trains: rows that do not fill a batch, and tables that the data cannot
# fill (full_disk_test.sh: too little room on the disk).
source "$(dirname "$0")/lib.sh" "$@"
{
  echo "click,age,user"
  for row in {1..3072}; do echo "$((row % 3 == 0)),$((row % 7)),u$row"; done
} >train.csv
cat >schema.yaml <<'YAML'
columns: {click: {role: label}, age: {role: dense}, user: {role: categorical}}
YAML
$renzan data import --format csv --schema schema.yaml --output small train.csv >/dev/null
cat >small.yaml <<'YAML'
data: {train: {path: small}}
model: {embedding_dim: 8, bottom_mlp: [16], top_mlp: [16]}
training: {batch_size: 2048}
optimizer: {sparse: {type: sgd}}
YAML
left_out() { python3 -c 'import json; print(json.load(open("run/manifest.json"))["left_out_rows"])'; }

expect_exit 0 "1024 of 3072 training rows (33.3 %) are never trained on" \
  $renzan train small.yaml --run-dir run
grep -q "training.batch_size: 1536 leaves out none" out.txt || fail "$(cat out.txt)"
[ "$(left_out)" = 1024 ] || fail "manifest.json: $(left_out)"
rm -rf run
$renzan train small.yaml --run-dir run --set training.batch_size=1536 2>log.txt
! grep -q "training rows" log.txt || fail "$(cat log.txt)"
[ "$(left_out)" = 0 ] || fail "manifest.json: $(left_out)"
expect_exit 78 "3072 training rows cannot fill one batch of 4096: set training.batch_size to 3072" \
  $renzan train small.yaml --run-dir other --set training.batch_size=4096
[ ! -e other ] || fail "a run directory was made"

$renzan data import --format csv --schema schema.yaml --vocabulary hash:100000000 --output wide \
  train.csv >/dev/null
$renzan plan small.yaml --workers 1 --set data.train.path=wide --json >plan.json || true
python3 - <<'PY' || fail "$(cat plan.json)"
import json
plan = json.load(open("plan.json"))
left_out, untouched = plan["warnings"]
assert "1024 of 3072 training rows" in left_out
assert "the table of 'user' takes 3.2 GB of memory, but of its 100000000 rows this" in untouched
assert "run can look up at most 2048: import the data" in untouched
assert plan["model_bytes"] < 100e3
assert plan["full_checkpoint_bytes"] < 4e6  # with the counts of metrics
PY
