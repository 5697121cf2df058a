# Checkpoints and the model of a table of which few rows are trained hold only these rows. They are
# the same model on any workers, killed or not, and for every command that reads them.
source "$(dirname "$0")/lib.sh" "$@"
{
  echo "click,age,user,item"
  for row in {1..4096}; do echo "$((row % 3 == 0)),$((row % 7)),u$row,i$((row % 50))"; done
} >train.csv
cat >schema.yaml <<'YAML'
columns:
  click: {role: label}
  age: {role: dense}
  user: {role: categorical}
  item: {role: categorical}
YAML
$renzan data import --format csv --schema schema.yaml --vocabulary user=hash:2000000 \
  --vocabulary item=hash:1000 --output data train.csv >/dev/null
cat >small.yaml <<'YAML'
seed: 3
data: {train: {path: data}}
model: {embedding_dim: 8, bottom_mlp: [16], top_mlp: [16, 8]}
numerics: {row_blocks: 4, column_blocks: 2}
training: {batch_size: 256, epochs: 4, log_every: 100}
optimizer: {sparse: {type: rowwise_adagrad, learning_rate: 0.05}}
YAML
kilobytes() { du -sk "$1" | cut -f1; }
train() { $renzan train small.yaml "$@" >log.txt 2>&1 || { show_log; fail "train $*"; }; }

train --run-dir one
sha256=$(sha256_of one)
# The table of users has 80 MB with its states; that of items is too small to be sparse.
[ "$(kilobytes one/model)" -lt 1000 ] || fail "the model takes $(kilobytes one/model) KB"
grep -q '"kind": "full"' one/model/manifest.json || fail "not full"
python3 - <<'PY' || fail "other files are sparse"
import json
for file in json.load(open("one/model/manifest.json"))["files"]:
    assert ("initial_rows" in file) == file["name"].startswith("table.user."), file["name"]
PY
expect_exit 0 "" $renzan checkpoint verify one/model
train --run-dir whole --set checkpoint.sparse=false
[ "$(sha256_of whole)" = $sha256 ] || fail "another model with all rows"
[ "$(kilobytes whole/model)" -gt 70000 ] || fail "all rows take $(kilobytes whole/model) KB"

# Killed, and resumed on two workers.
is_there() { [ -n "$(checkpoints_in killed/checkpoints 2>/dev/null | sed -n 2p)" ]; }
is_there_or_has_ended() { is_there || has_ended "$launcher"; }
for attempt in $(seq 20); do
  rm -rf killed
  $renzan train small.yaml --run-dir killed --set checkpoint.every_steps=1 >log.txt 2>&1 &
  launcher=$!
  wait_for is_there_or_has_ended
  kill -KILL $launcher 2>/dev/null || true
  wait $launcher 2>/dev/null || true
  launcher=""
  [ -e killed/model ] || break
done
is_there && [ ! -e killed/model ] || fail "not killed after its second checkpoint"
train --run-dir killed --set checkpoint.every_steps=1 --workers 2 --set sharding.default=row_wise
expect_log "resuming from step-"
[ "$(sha256_of killed)" = $sha256 ] || fail "another model after a kill"
expect_exit 0 "same:" $renzan checkpoint diff one/model killed/model
train --run-dir three --workers 3 --set sharding.default=replicated
[ "$(sha256_of three)" = $sha256 ] || fail "another model on three workers"

# Whoever reads it sees all rows.
$renzan predict one --data data --output one.csv 2>/dev/null
$renzan predict killed --data data --output two.csv --workers 2 2>/dev/null
cmp one.csv two.csv || fail "other predictions"
$renzan checkpoint export one/model --output whole.safetensors >/dev/null
python3 - <<'PY' || fail "an export without all rows"
import json, struct
with open("whole.safetensors", "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
assert header["embedding.user.weight"]["shape"] == [2000000, 8], header
PY

# A run that starts from it does not have more rows than the two have trained.
train --run-dir day2 --initialize-from one
[ "$(kilobytes day2/model)" -lt 1000 ] || fail "day 2's model takes $(kilobytes day2/model) KB"
train --run-dir day2.two --initialize-from one --workers 2
[ "$(sha256_of day2)" = "$(sha256_of day2.two)" ] || fail "another second day on two workers"
