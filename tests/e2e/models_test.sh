# Every model of the catalogue from end to end: trained with two workers up to a step, resumed with
# three, evaluated and asked for predictions, to the sha256 of one worker; and the blocks that
# --print-config prints for it are the same model, bit by bit. tests/chaos kills some of them.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 4 --rows 2000 --output data >/dev/null
config() {  # TYPE MODEL_LINES: NAME.yaml
  cat >"$1.yaml" <<YAML
seed: 3
data: {train: {path: data, rows: [0, 1600]}, eval: {path: data, rows: [1600, 2000]}}
training: {batch_size: 64, max_steps: 12, log_every: 100}
optimizer: {dense: {learning_rate: 0.001}, sparse: {learning_rate: 0.05}}
checkpoint: {every_steps: 5}
$2
YAML
}
config any "model: {}"
types=$($renzan train --print-config any.yaml |
  sed -n 's/.*a model of the catalogue.*allowed: \(.*\), blocks/\1/p' | tr -d ,)
[ "$(wc -w <<<"$types")" -ge 7 ] || fail "which models are there? $types"
tried=0
for type in $types; do
  options=""
  [ $type != two_tower ] || options=", item_features: [C3, C1]"
  config $type "model: {type: $type$options}"
  if ! $renzan train $type.yaml --workers 1 --run-dir $type/one 2>log.txt; then
    # sequences_test.sh, next_item_test.sh and tasks_test.sh have data for these.
    grep -qE "model.type: $type (attends to sequences|predicts the next item|learns from two labels)" \
      log.txt || fail "$type: $(cat log.txt)"
    continue
  fi
  tried=$((tried + 1))
  $renzan train $type.yaml --workers 2 --run-dir $type/two --set training.max_steps=7 2>log.txt ||
    fail "$type: $(cat log.txt)"
  $renzan train $type.yaml --workers 3 --run-dir $type/two 2>log.txt || fail "$type: $(cat log.txt)"
  [ "$(sha256_of $type/two)" = "$(sha256_of $type/one)" ] || fail "$type: other bits when resumed"
  # As a user copies it.
  $renzan train --print-config $type.yaml | sed -n '/^# model:/,$ s/^# //p' >blocks.txt
  config $type.blocks "$(cat blocks.txt)"
  $renzan train $type.blocks.yaml --run-dir $type/blocks 2>log.txt || fail "$type: $(cat log.txt)"
  [ "$(sha256_of $type/blocks)" = "$(sha256_of $type/one)" ] || fail "$type: other bits as blocks"
  # Each is the model that the other may start from.
  $renzan train $type.blocks.yaml --run-dir $type/started --initialize-from $type/one \
    --set training.max_steps=0 2>log.txt || fail "$type: $(cat log.txt)"
  $renzan train $type.yaml --run-dir $type/back --initialize-from $type/started \
    --set training.max_steps=0 2>log.txt || fail "$type: $(cat log.txt)"
  expect_exit 1 "differing: 0 of" $renzan checkpoint diff $type/one $type/back
  for run in one blocks; do
    $renzan eval $type/$run --data data --rows 1600 2000 >$run.eval 2>log.txt ||
      fail "$type: $(cat log.txt)"
    $renzan predict $type/$run --data data --rows 1600 2000 --output $type.$run.csv 2>log.txt ||
      fail "$type: $(cat log.txt)"
  done
  cmp $type.one.csv $type.blocks.csv || fail "$type: other predictions as blocks"
done
[ $tried -ge 15 ] || fail "only $tried of these were trained: $types"
# A row's only accumulator is shared with the first-order weight.
$renzan train deepfm.yaml --run-dir shared --set optimizer.sparse.type=rowwise_adagrad 2>log.txt
grep -q "warning: .*larger gradients decide the row's learning rate" log.txt ||
  fail "no warning: $(cat log.txt)"
