# Models of the next item from end to end: negatives that training draws, PyTorch's losses, the same
# sha256 for any workers, threads, backends and kills, scores that rank what comes next first, and
# one error for each thing that cannot be.
source "$(dirname "$0")/lib.sh" "$@"
golden=$source_root/tests/golden/sequences
python3 "$golden/clicks.py" >clicks.csv
$renzan data import --format csv --schema "$golden/schema.yaml" --output clicks clicks.csv \
  >/dev/null 2>log.txt || fail "$(cat log.txt)"
for type in sasrec hstu; do
  $renzan train "$golden/$type.yaml" --workers 1 --threads 1 --run-dir $type 2>log.txt ||
    fail "$(cat log.txt)"
  expect_log "draws from all 99999 rows of a hashed vocabulary"
  python3 - "$golden/$type.json" $type/metrics.jsonl <<'PYTHON'
import json, sys
expected = json.load(open(sys.argv[1]))["losses"]
losses = [json.loads(line)["train/loss"] for line in open(sys.argv[2])]
assert len(losses) == len(expected) == 10, losses
assert max(abs(a - b) for a, b in zip(losses, expected)) < 2e-6, (losses, expected)
PYTHON
  # The graph as a user copies it.
  $renzan train --print-config "$golden/$type.yaml" | sed -n '/^# model:/,$ s/^# //p' >model.txt
  grep -q "type: sampled_softmax" model.txt || fail "no blocks: $(cat model.txt)"
  { sed '/^model:/,/^training:/ {/^training:/!d}' "$golden/$type.yaml"; cat model.txt; } >blocks.yaml
  $renzan train blocks.yaml --run-dir $type.blocks 2>log.txt || fail "$(cat log.txt)"
  [ "$(sha256_of $type.blocks)" = "$(sha256_of $type)" ] || fail "$type: other bits as blocks"
  $renzan train blocks.yaml --run-dir $type.started --initialize-from $type --set training.max_steps=0 \
    2>log.txt || fail "$(cat log.txt)"
  $renzan eval $type --data clicks >/dev/null 2>log.txt || fail "$(cat log.txt)"
  for workers in 1 2; do
    $renzan predict $type --data clicks --workers $workers --output $type.$workers.csv 2>log.txt ||
      fail "$(cat log.txt)"
  done
  cmp $type.1.csv $type.2.csv || fail "$type: other predictions with two workers"
done

# Positives only, without any other feature: item i is followed by item i + 1.
python3 - <<'PYTHON'
import random
draw = random.Random(3)
def write(name, rows):
    with open(name, "w") as file:
        print("label,item,seen", file=file)
        for row in range(rows):
            first, n = draw.randrange(40), 1 + draw.randrange(4)
            seen = [(first + i) % 40 for i in range(n)]
            other = draw.randrange(2) if name == "test.csv" else 0
            item = draw.randrange(40) if other else (first + n) % 40
            print(f"{1 - other},i{item},{'|'.join(f'i{i}' for i in seen)}", file=file)
write("train.csv", 2000)
write("test.csv", 400)
PYTHON
cat >schema.yaml <<'YAML'
columns:
  label: {role: label}
  item: {role: categorical}
  seen: {role: multi_hot, table: item, max_length: 4}
YAML
$renzan data import --format csv --schema schema.yaml --vocabulary threshold:1 --output train \
  train.csv >/dev/null 2>log.txt || fail "$(cat log.txt)"
$renzan data import --format csv --schema schema.yaml --vocabulary-from train --output test \
  test.csv >/dev/null 2>log.txt || fail "$(cat log.txt)"
cat >small.yaml <<'YAML'
seed: 5
data: {train: {path: train}, eval: {path: test}}
model:
  {type: sasrec, embedding_dim: 8, attention_layers: 1, dropout: 0.1, negatives: {item: 6}}
training: {batch_size: 64, epochs: 6, log_every: 100}
optimizer: {dense: {learning_rate: 0.01}, sparse: {type: adam, learning_rate: 0.02}}
YAML
$renzan train small.yaml --workers 1 --threads 1 --run-dir one 2>log.txt || fail "$(cat log.txt)"
! grep -q "can learn only a constant\|hashed" log.txt || fail "wrong advice: $(cat log.txt)"
expected=$(sha256_of one)
for backend in $(several_worker_backends); do
  for workers in 2 3; do
    $renzan train small.yaml --workers $workers --threads $((workers - 1)) --backend $backend \
      --run-dir $backend$workers 2>log.txt || fail "$(cat log.txt)"
    [ "$(sha256_of $backend$workers)" = "$expected" ] ||
      fail "other bits with $workers workers, $backend"
  done
done
# Killed, and resumed by others.
train_in_background --workers 2 --set training.epochs=1000000 --set checkpoint.every_steps=20
wait_for ls run/checkpoints/step-00000020/manifest.json >/dev/null 2>&1
kill -KILL $(descendants $launcher) $launcher 2>/dev/null || true
wait $launcher 2>/dev/null || true
launcher=""
for checkpoint in $(checkpoints_in run/checkpoints); do
  [ $checkpoint = step-00000020 ] || rm -r run/checkpoints/$checkpoint
done
$renzan train small.yaml --workers 3 --run-dir run 2>log.txt || fail "$(cat log.txt)"
expect_log "step 20"
[ "$(sha256_of run)" = "$expected" ] || fail "other bits when resumed"
$renzan eval one --data test --json >eval.json 2>log.txt || fail "$(cat log.txt)"
python3 -c 'import json
auc = json.load(open("eval.json"))["auc"]
assert auc > 0.9, auc'
$renzan plan small.yaml --workers 2 >plan.txt 2>&1 || fail "$(cat plan.txt)"
$renzan bench train small.yaml --steps 3 >bench.txt 2>&1 || fail "$(cat bench.txt)"

bad() {  # FRAGMENT OVERRIDE...
  local fragment=$1 set=()
  shift
  for override in "$@"; do set+=(--set "$override"); done
  expect_exit 78 "$fragment" $renzan train small.yaml --run-dir bad "${set[@]}"
  [ ! -e bad ] || fail "$fragment: something was written"
}
bad "model.negatives.seen: a sample has several values of 'seen'" "model.negatives={seen: 3}"
bad "negatives must be 1 to 4096 for each feature" "model.negatives={item: 0}"
bad "the dataset has no categorical feature 'itme': did you mean 'item'" "model.negatives={itme: 3}"
bad "tells 'item' from negatives: say how many" "model={type: sasrec}"
bad "negatives 'item.negatives': say how many model.negatives.item training draws" \
  "model={type: blocks, blocks: {newest: {type: pool, inputs: [embeddings.seen], method: last},
   logit: {type: sampled_softmax, inputs: [newest, embeddings.item, embeddings.item.negatives]}}}"
bad "nothing in model.type: din takes them" "model={type: din, negatives: {item: 3}}"
printf 'label,item,seen\n1,i1,i1\n1,i1,i1\n' >lonely.csv
$renzan data import --format csv --schema schema.yaml --vocabulary threshold:1 --unseen 0 \
  --output lonely lonely.csv >/dev/null 2>log.txt || fail "$(cat log.txt)"
bad "the table 'item' has fewer than two ids of known values" data.train.path=lonely \
  data.eval.path= training.batch_size=2 numerics.virtual_workers=1
