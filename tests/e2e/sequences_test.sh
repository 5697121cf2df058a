# Sequences from end to end: imported beside the feature whose table they share, trained by din, bst
# and two towers to PyTorch's losses, with the same sha256 for any workers and kills, evaluated and asked for
# predictions; pooled for a model without sequences; and refused where nothing would take them.
source "$(dirname "$0")/lib.sh" "$@"
golden=$source_root/tests/golden/sequences
losses_are() {  # GOLDEN METRICS
  python3 - "$1" "$2" <<'PYTHON'
import json, sys
expected = json.load(open(sys.argv[1]))["losses"]
losses = [json.loads(line)["train/loss"] for line in open(sys.argv[2])]
assert len(losses) == len(expected) == 10, losses
assert max(abs(a - b) for a, b in zip(losses, expected)) < 2e-6, (losses, expected)
PYTHON
}
python3 "$golden/clicks.py" >clicks.csv
$renzan data import --format csv --schema "$golden/schema.yaml" --output clicks clicks.csv \
  >/dev/null 2>log.txt || fail "$(cat log.txt)"
grep -q "format_version: 6" clicks/dataset.yaml || fail "another version: $(cat clicks/dataset.yaml)"
$renzan data verify clicks >/dev/null
$renzan train "$golden/din.yaml" --workers 1 --run-dir one 2>log.txt || fail "$(cat log.txt)"
losses_are "$golden/din.json" one/metrics.jsonl
for workers in 2 3; do
  $renzan train "$golden/din.yaml" --workers $workers --run-dir many --set training.max_steps=4 \
    2>log.txt || fail "$(cat log.txt)"
  $renzan train "$golden/din.yaml" --workers 4 --run-dir many 2>log.txt || fail "$(cat log.txt)"
  [ "$(sha256_of many)" = "$(sha256_of one)" ] || fail "other bits with $workers workers"
  rm -r many
done
# BST, with a transformer layer over the same sequence.
$renzan train "$golden/bst.yaml" --workers 1 --run-dir bst 2>log.txt || fail "$(cat log.txt)"
losses_are "$golden/bst.json" bst/metrics.jsonl
$renzan train "$golden/bst.yaml" --workers 3 --run-dir bst3 2>log.txt || fail "$(cat log.txt)"
[ "$(sha256_of bst3)" = "$(sha256_of bst)" ] || fail "other bits of bst with 3 workers"
# Two towers, whose logit is a match of a query and an item.
$renzan train "$golden/two_towers.yaml" --workers 1 --run-dir towers 2>log.txt || fail "$(cat log.txt)"
losses_are "$golden/two_towers.json" towers/metrics.jsonl
$renzan train "$golden/two_towers.yaml" --workers 3 --run-dir towers3 2>log.txt || fail "$(cat log.txt)"
[ "$(sha256_of towers3)" = "$(sha256_of towers)" ] || fail "other bits of two towers with 3 workers"
# Every other block that takes sequences, as a graph.
$renzan train "$golden/blocks.yaml" --workers 1 --run-dir graph 2>log.txt || fail "$(cat log.txt)"
losses_are "$golden/blocks.json" graph/metrics.jsonl
$renzan train "$golden/blocks.yaml" --workers 3 --run-dir graph3 2>log.txt || fail "$(cat log.txt)"
[ "$(sha256_of graph3)" = "$(sha256_of graph)" ] || fail "other bits of blocks with 3 workers"
# A table of two row blocks on different workers, wherever its bags are.
for workers in 1 3; do
  $renzan train "$golden/din.yaml" --workers $workers --run-dir blocks$workers \
    --set numerics.row_blocks=2 --set sharding.default=row_wise 2>log.txt ||
    fail "$(cat log.txt)"
done
[ "$(sha256_of blocks1)" = "$(sha256_of blocks3)" ] || fail "other bits in row blocks"
$renzan eval one --data clicks >/dev/null 2>log.txt || fail "$(cat log.txt)"
$renzan predict one --data clicks --output one.csv 2>log.txt || fail "$(cat log.txt)"
[ "$(wc -l <one.csv)" -ge 640 ] || fail "$(head -3 one.csv)"
$renzan plan "$golden/din.yaml" --workers 2 >plan.txt 2>&1 || fail "$(cat plan.txt)"
# The graph as a user copies it.
{ grep -v "^model:" "$golden/din.yaml"
  $renzan train --print-config "$golden/din.yaml" | sed -n '/^# model:/,$ s/^# //p'; } >blocks.yaml
$renzan train blocks.yaml --run-dir blocks 2>log.txt || fail "$(cat log.txt)"
[ "$(sha256_of blocks)" = "$(sha256_of one)" ] || fail "other bits as blocks"
$renzan train blocks.yaml --run-dir blocks.started --initialize-from one --set training.max_steps=0 \
  2>log.txt || fail "$(cat log.txt)"

# Models without sequences take them pooled, if they are told to.
other() {  # TYPE MORE
  rm -rf other
  $renzan train "$golden/din.yaml" --run-dir other --set "model={type: $1, embedding_dim: 8${2:-}}"
}
expect_exit 78 "does not take the sequence 'clicked': set model.tables.clicked.pooling" other deepfm
other deepfm ", tables: {clicked: {pooling: sum}}" 2>log.txt || fail "$(cat log.txt)"
expect_exit 78 "features that share a table are pooled alike" \
  other deepfm ", tables: {clicked: {pooling: mean}}"
expect_exit 78 "the rows of feature 'clicked' are those of table 'item'" \
  other din ", tables: {clicked: {embedding_dim: 4}}"
# Sequences that are too long.
sed 's/, keep: newest//' "$golden/schema.yaml" >strict.yaml
expect_exit 65 "but max_length is 5; 'keep: newest' or 'keep: oldest' in the schema shortens it" \
  $renzan data import --format csv --schema strict.yaml --output strict clicks.csv
[ ! -e strict ] || fail "a dataset was left behind"
# Data of another schema.
sed 's/max_length: 5/max_length: 4/' "$golden/schema.yaml" >shorter.yaml
expect_exit 78 "use the same schema" $renzan data import --format csv --schema shorter.yaml \
  --vocabulary-from clicks --output shorter clicks.csv
expect_exit 78 "features.max_lengths must be 0, or 1 to 4096" $renzan plan "$golden/din.yaml" \
  --set data.train.path= --set 'features={categorical: [a], num_embeddings: [9], max_lengths: [9]}'
