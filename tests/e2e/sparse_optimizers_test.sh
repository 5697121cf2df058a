# Optimizers of the tables beyond Adagrad: a sparse checkpoint of a large table, increments with
# 8-bit rows, a model of another run whose states go on, and what is refused.
source "$(dirname "$0")/lib.sh" "$@"
{
  echo "click,age,user,item"
  for row in {1..1024}; do echo "$((row % 3 == 0)),$((row % 7)),u$row,i$((row % 50))"; done
} >train.csv
cat >schema.yaml <<'YAML'
columns:
  click: {role: label}
  age: {role: dense}
  user: {role: categorical}
  item: {role: categorical}
YAML
$renzan data import --format csv --schema schema.yaml --vocabulary user=hash:1100000 \
  --vocabulary item=hash:1000 --output data train.csv >/dev/null
cat >small.yaml <<'YAML'
seed: 3
data: {train: {path: data}, shuffle: false}
model: {embedding_dim: 8, bottom_mlp: [16], top_mlp: [16, 8]}
numerics: {row_blocks: 4, column_blocks: 2}
training: {batch_size: 128, log_every: 100}
optimizer: {sparse: {type: adam, learning_rate: 0.01, weight_decay: 0.1}}
YAML
echo 'workers_per_host: 1' >topology.yaml
train() { $renzan train small.yaml "$@" >log.txt 2>&1 || { show_log; fail "train $*"; }; }

for optimizer in adam momentum ftrl; do
  of=(--set optimizer.sparse.type=$optimizer)
  [ $optimizer = ftrl ] && of+=(--set optimizer.sparse.weight_decay=0)
  train --run-dir $optimizer "${of[@]}"
  train --run-dir whole "${of[@]}" --set checkpoint.sparse=false --workers 3
  [ "$(sha256_of whole)" = "$(sha256_of $optimizer)" ] || fail "$optimizer: another model with all rows"
  [ "$(du -sk $optimizer/model | cut -f1)" -lt 2000 ] || fail "$optimizer: a model of all rows"
  [ "$(du -sk whole/model | cut -f1)" -gt 60000 ] || fail "$optimizer: a model of few rows"
  expect_exit 0 "" $renzan checkpoint verify $optimizer/model
  rm -r whole

  # Increments, resumed elsewhere; from those with 8-bit rows runs resume, too, though not exactly.
  long=("${of[@]}" --set training.epochs=30 --set checkpoint.every_steps=20)
  for quantize in none int8; do
    [ $quantize = none ] || [ $optimizer = adam ] || continue
    train_until_checkpoints 3 resumed "${long[@]}" --set checkpoint.quantize=$quantize
    sha256=$(sha256_of resumed)
    last=$(checkpoints_in resumed/checkpoints | head -1)
    grep -q '"kind": "incremental"' resumed/checkpoints/$last/manifest.json ||
      fail "$optimizer: no increment"
    rm -r resumed/model
    train --run-dir resumed "${long[@]}" --set checkpoint.quantize=$quantize --workers 2 \
      --set sharding.default=row_wise
    expect_log "resuming from $last"
    [ $quantize = int8 ] || [ "$(sha256_of resumed)" = $sha256 ] ||
      fail "$optimizer: another model when resumed"
  done
  expect_exit 78 "device: cuda does not support optimizer.sparse.type: $optimizer" \
    $renzan plan small.yaml "${of[@]}" --set device=cuda --topology topology.yaml
done

# A run whose every step sees the same batch: two steps, and two more in a run that starts from its
# model, are four steps. Adam's bias correction counts all of them.
same=(--set training.batch_size=1024 --set training.epochs=4 --set optimizer.sparse.weight_decay=0)
train --run-dir four "${same[@]}"
train --run-dir two "${same[@]}" --set training.max_steps=2
train --run-dir more "${same[@]}" --set training.max_steps=2 --initialize-from two
grep -q '"sparse_optimizer_earlier_steps":"2"' more/model/manifest.json ||
  fail "earlier steps are not recorded"
expect_exit 1 "differing: 0 of" $renzan checkpoint diff four/model more/model

expect_exit 78 "weight_decay must be 0 with type: ftrl" $renzan train small.yaml --run-dir none \
  --set optimizer.sparse.type=ftrl
expect_exit 78 "whose learning rate is constant" $renzan train small.yaml --run-dir none \
  --set optimizer.sparse.type=ftrl --set optimizer.sparse.weight_decay=0 \
  --set optimizer.schedule.warmup_steps=3

# How rows begin, table by table, and tables with learning rates of their own.
first=(--set training.max_steps=0 --set checkpoint.sparse=false)
begin() { rm -rf begin && train --run-dir begin "${first[@]}" "$@"; }
# table FEATURE: the deviation and the largest magnitude of its values.
table() {
  python3 - "$1" <<'PY'
import array, glob, json, struct, sys
values = array.array("f")
for path in glob.glob(f"begin/model/table.{sys.argv[1]}*.safetensors"):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    for key, entry in header.items():
        if key.endswith(".weight"):
            values.frombytes(data[slice(*entry["data_offsets"])])
print(f"{(sum(v * v for v in values) / len(values)) ** 0.5:.3g} {max(map(abs, values)):.2g}")
PY
}
begin
[[ "$(table item)" = "0.018"*" 0.032" ]] || fail "uniform: $(table item)"  # √(1/1001)
begin --set model.initial_values=normal --set model.initial_deviation=0.5 \
  --set model.tables.user.initial_values=zeros
[[ "$(table item)" = 0.5[0-9]*" "[12]* || "$(table item)" = 0.4[89]*" "[12]* ]] ||
  fail "normal: $(table item)"
[ "$(table user)" = "0 0" ] || fail "zeros: $(table user)"
begin --set model.tables.item.initial_values=xavier_uniform
[[ "$(table item)" = 0.04*" 0.077" ]] || fail "xavier_uniform: $(table item)"  # √(6/1009)

normal=(--set model.initial_values=normal --set model.initial_deviation=0.01
  --set model.tables.item.learning_rate_factor=0.5)
train --run-dir normal "${normal[@]}"
grep -q '"version": 3' normal/model/manifest.json || fail "not version 3"
grep -q '"distribution":"normal"' normal/model/manifest.json || fail "no distribution"
expect_exit 0 "" $renzan checkpoint verify normal/model
train --run-dir whole "${normal[@]}" --set checkpoint.sparse=false --workers 3
[ "$(sha256_of whole)" = "$(sha256_of normal)" ] || fail "another model with all rows"
rm -rf begin
train --run-dir begin "${normal[@]}" --set training.max_steps=0
$renzan train small.yaml --run-dir still "${normal[@]}" --set optimizer.sparse.weight_decay=0 \
  --set model.tables.item.learning_rate_factor=0 >log.txt 2>&1 || { show_log; fail "still"; }
python3 - <<'PY' || fail "with rate 0 rows moved, or others did not"
import json
def hashes(run, table):
    files = json.load(open(f"{run}/model/manifest.json"))["files"]
    every = [t for f in files for t in f["tensors"] + f.get("initial_rows", {}).get("tensors", [])]
    return sorted((t["key"], t["sha256"]) for t in every
                  if t["key"].startswith(f"embedding.{table}.") and t["key"].endswith(".weight")
                  and t["sha256"])
assert hashes("begin", "item") and hashes("begin", "item") == hashes("still", "item")
assert hashes("begin", "user") != hashes("still", "user")
PY
expect_exit 78 "device: cuda does not support model.tables.NAME.learning_rate_factor" \
  $renzan plan small.yaml --set device=cuda --topology topology.yaml \
  --set optimizer.sparse.type=sgd --set model.tables.item.learning_rate_factor=2
expect_exit 78 "device: cuda does not support model.tables.NAME.frozen" \
  $renzan plan small.yaml --set device=cuda --topology topology.yaml \
  --set optimizer.sparse.type=sgd --set model.tables.item.frozen=true
expect_exit 78 "device: cuda does not support optimizer.blocks" \
  $renzan plan small.yaml --set device=cuda --topology topology.yaml \
  --set optimizer.sparse.type=sgd --set optimizer.blocks.top.frozen=true
expect_exit 78 "optimizer.blocks.tpo: the model has no such block with parameters" \
  $renzan train small.yaml --run-dir none --set optimizer.blocks.tpo.frozen=true
expect_exit 78 "optimizer.blocks.tpo: the model has no such block with parameters" \
  $renzan plan small.yaml --topology topology.yaml --set optimizer.blocks.tpo.frozen=true
expect_exit 78 "has learning_rate_factor 0 for table item" $renzan train small.yaml \
  --run-dir none --set optimizer.sparse.type=ftrl --set optimizer.sparse.weight_decay=0 \
  --set model.tables.item.learning_rate_factor=0
# FTRL computes rows from its states alone.
ftrl=(--set optimizer.sparse.type=ftrl --set optimizer.sparse.weight_decay=0)
$renzan train small.yaml --run-dir ftrl "${ftrl[@]}" >log.txt 2>&1 || { show_log; fail "ftrl"; }
$renzan train small.yaml --run-dir later "${ftrl[@]}" --initialize-from ftrl >log.txt 2>&1 ||
  { show_log; fail "ftrl from ftrl"; }
expect_exit 78 "ftrl computes rows from its states alone" $renzan train small.yaml --run-dir other \
  "${ftrl[@]}" --initialize-from ftrl --set optimizer.sparse.learning_rate=0.001
expect_exit 78 "ftrl computes rows from its states alone" $renzan train small.yaml --run-dir other \
  "${ftrl[@]}" --initialize-from normal

# Unfreezing with a fresh optimizer: weights go on, states and counts of steps do not.
adam=(--set optimizer.dense.type=adam)
train --run-dir frozen "${adam[@]}" --set optimizer.blocks.top.frozen=true
train --run-dir kept "${adam[@]}" --initialize-from frozen
grep -q optimizer_earlier_steps kept/model/manifest.json || fail "no earlier steps"
train --run-dir weights --initialize-from frozen --set training.max_steps=0 \
  --set optimizer.dense.type=sgd --set optimizer.sparse.type=sgd
train --run-dir unfrozen "${adam[@]}" --initialize-from weights
expect_log "dense adam starts anew (the model had sgd); tables adam starts anew"
! grep -q optimizer_earlier_steps unfrozen/model/manifest.json || fail "earlier steps"
