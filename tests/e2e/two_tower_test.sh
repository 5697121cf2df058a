# Two towers with the negatives of their batches, from end to end: PyTorch's losses, and one sha256
# for any workers, threads, backends and kills; scores that no other row changes; and what is
# refused.
source "$(dirname "$0")/lib.sh" "$@"
golden=$source_root/tests/golden/towers
python3 "$golden/views.py" >views.csv
$renzan data import --format csv --schema "$golden/schema.yaml" --output views views.csv \
  >out.txt 2>log.txt || fail "$(cat log.txt)"
towers() { $renzan train "$golden/two_tower.yaml" "$@" 2>log.txt || fail "$*: $(cat log.txt)"; }
towers --workers 1 --threads 1 --run-dir one
python3 - "$golden/two_tower.json" one/metrics.jsonl <<'PYTHON'
import json, sys
expected = json.load(open(sys.argv[1]))["losses"]
losses = [json.loads(line)["train/loss"] for line in open(sys.argv[2])]
assert len(losses) == len(expected) == 10, losses
assert max(abs(a - b) for a, b in zip(losses, expected)) < 5e-6, (losses, expected)
assert losses[-1] < losses[0] - 0.1, losses  # it learns
PYTHON
grep -q "warning" log.txt && fail "positives alone are right: $(cat log.txt)"

# The virtual workers decide what is a negative, not the workers.
many="--set numerics.virtual_workers=4 --set training.batch_size=48 --set training.max_steps=10"
towers --workers 1 --threads 1 --run-dir four $many
[ "$(sha256_of four)" != "$(sha256_of one)" ] || fail "virtual workers have no effect"
for backend in gloo mpi; do
  for workers in 2 3; do
    towers --workers $workers --threads 2 --backend $backend --run-dir many $many \
      --set training.max_steps=4
    towers --workers $((5 - workers)) --backend $backend --run-dir many $many
    [ "$(sha256_of many)" = "$(sha256_of four)" ] ||
      fail "$workers workers over $backend, then $((5 - workers)): other bits"
    rm -r many
  done
done
long="$many --set training.max_steps=-1 --set training.epochs=600 --set training.log_every=1000"
$renzan train "$golden/two_tower.yaml" --run-dir killed $long --set checkpoint.every_steps=1 \
  >log.txt 2>&1 &
launcher=$!
until compgen -G "killed/checkpoints/step-*" >/dev/null; do
  kill -0 $launcher 2>/dev/null || fail "it ended: $(cat log.txt)"
  sleep 0.05
done
kill -KILL $launcher
wait $launcher && fail "was not killed: $(cat log.txt)"
launcher=""
towers --run-dir killed $long --workers 2
towers --run-dir whole $long
[ "$(sha256_of killed)" = "$(sha256_of whole)" ] || fail "killed and resumed: other bits"

# The graph as a user copies it.
{ sed '/^model:/,/^training:/ {/^training:/!d}' "$golden/two_tower.yaml"
  $renzan train --print-config "$golden/two_tower.yaml" | sed -n '/^# model:/,$ s/^# //p'; } \
  >blocks.yaml
grep -q "type: in_batch_softmax" blocks.yaml && grep -q "popularity: true" blocks.yaml ||
  fail "$(cat blocks.yaml)"
$renzan train blocks.yaml --run-dir blocks 2>log.txt || fail "$(cat log.txt)"
[ "$(sha256_of blocks)" = "$(sha256_of one)" ] || fail "other bits as blocks"

# Scores are cosines over the temperature, whatever other rows are asked for.
$renzan eval one --data views --json >eval.json 2>log.txt || fail "$(cat log.txt)"
python3 -c 'import json; assert set(json.load(open("eval.json"))) <= {"rows", "auc"}' ||
  fail "scores have no log loss: $(cat eval.json)"
$renzan predict one --data views --output all.csv --with item 2>log.txt || fail "$(cat log.txt)"
$renzan predict one --data views --rows 100 103 --output some.csv --with item 2>log.txt ||
  fail "$(cat log.txt)"
[ "$(sed -n 102,104p all.csv)" = "$(sed -n 2,4p some.csv)" ] || fail "other rows change scores"
$renzan predict one --workers 2 --data views --output two.csv --with item 2>log.txt ||
  fail "$(cat log.txt)"
cmp all.csv two.csv || fail "several workers predict something else"

refused() {  # FRAGMENT ARGUMENT...: and nothing is written
  expect_exit 78 "$1" $renzan train "$golden/two_tower.yaml" --run-dir refused "${@:2}"
  [ ! -e refused ] || fail "a refused run left a directory"
}
refused "model.item_features: the dataset has no categorical feature 'itme'" \
  --set "model.item_features=[itme]"
refused "the dataset has no categorical feature 'hour'" --set "model.item_features=[item, hour]"
refused "model.item_features: leave nothing to the item's tower" --set "model.item_features=[]"
refused "block logit takes a sample's negatives from the other samples of its virtual worker" \
  --set training.batch_size=64 --set numerics.virtual_workers=64
expect_exit 78 "logit (in_batch_softmax)" $renzan plan blocks.yaml --set device=cuda
grep -q "blocks.yaml:[0-9]*:[0-9]*: device: cuda has no kernels" out.txt ||
  fail "not where it is: $(cat out.txt)"
expect_exit 78 "device: cuda has no kernels for the blocks" \
  $renzan plan "$golden/two_tower.yaml" --set device=cuda
sed 's/item: item$/item: ""/' blocks.yaml >no_item.yaml
expect_exit 78 "needs item, the feature whose ids are counted" $renzan train no_item.yaml

# What it learns is no number, no input of other blocks, and no log loss in evaluations.
sed 's/view: {role: label}/view: {role: label, values: number}/' "$golden/schema.yaml" >numbers.yaml
$renzan data import --format csv --schema numbers.yaml --output numbers views.csv >/dev/null 2>&1
refused "which learns by squared_error, but it compares an item with others" \
  --set data.train.path=numbers
sed 's/^\( *\)blocks:/&\n\1  more: {type: mlp, inputs: [logit], layers: [1], linear_output: true}/' \
  blocks.yaml >inner.yaml
expect_exit 78 "block more takes the logit of logit, which is another one in training" \
  $renzan train inner.yaml --run-dir refused
watch=(--set data.eval.path=views --set training.eval_every=3 --set training.keep_best=true)
refused "log_loss means nothing for an output that compares items" "${watch[@]}"
refused "log_loss means nothing for an output that compares items" "${watch[@]}" \
  --set training.early_stopping.metric=log_loss
towers "${watch[@]}" --set training.ranking='[5]' --set training.max_steps=6 --run-dir ranked
grep -q "eval at step 6: .*; the best so far" log.txt || fail "its log loss rises: $(cat log.txt)"
grep -q '"eval/hr@5"' ranked/metrics.jsonl || fail "$(cat ranked/metrics.jsonl)"
! grep "eval/loss\|eval/calibration\|train/auc\|train/calibration" ranked/metrics.jsonl ||
  fail "scores are no probabilities"
$renzan eval ranked --ranking 5 >ranked.txt 2>log.txt || fail "$(cat log.txt)"
grep -qi "NDCG@5" ranked.txt || fail "$(cat ranked.txt)"
