# optimizer.schedule.plateau: the rates fall where evaluations no longer improve, and the model is the
# same on any placement and however often the run is killed.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 8 --rows 4000 --output data >/dev/null
small_config data
constant=(--set training.epochs=12 --set training.eval_every=9
  --set optimizer.sparse.type=adagrad --set optimizer.sparse.learning_rate=0.2)
plateau=("${constant[@]}"
  --set optimizer.schedule.plateau.metric=auc --set optimizer.schedule.plateau.patience=1
  --set optimizer.schedule.plateau.factor=0.5 --set optimizer.schedule.plateau.floor=0.1)
often=(--set checkpoint.every_steps=5 --set checkpoint.keep=1)

$renzan train small.yaml --run-dir reference "${plateau[@]}" 2>log.txt || { cat log.txt >&2; fail "training"; }
expected=$(sha256_of reference)
expect_log "no improvement for 1 evaluation: the learning rates are 0.1 of the schedule's from here on"

# metrics.jsonl follows the rule, from the evaluations that it has.
python3 - <<'PY' || fail "other rates than the evaluations say"
import json
factor, best, seen, lowered = 1.0, None, set(), 0
for record in map(json.loads, open("reference/metrics.jsonl")):
    if "train/learning_rate_factor" in record:
        assert record["train/learning_rate_factor"] == factor, (record, factor)
    if "eval/auc" in record:
        if best is None or record["eval/auc"] > best:
            best = record["eval/auc"]
        else:
            factor, lowered = max(factor * 0.5, 0.1), lowered + 1
assert lowered >= 4 and factor == 0.1, (lowered, factor)
PY

$renzan train small.yaml --run-dir constant "${constant[@]}" 2>/dev/null
[ "$(sha256_of constant)" != "$expected" ] || fail "the plateau changed nothing"

# On another placement, and killed again and again.
$renzan train small.yaml --run-dir elsewhere "${plateau[@]}" --workers 3 --threads 1 \
  --backend gloo 2>/dev/null
[ "$(sha256_of elsewhere)" = "$expected" ] || fail "different bits with three workers"
attempt=0
until [ -e run/model ]; do
  attempt=$((attempt + 1))
  [ $attempt -le 60 ] || fail "no end after $attempt attempts"
  workers=$((attempt % 3 + 1))
  $renzan train small.yaml --run-dir run "${plateau[@]}" "${often[@]}" --workers $workers \
    --threads 1 --backend $([ $workers = 1 ] && echo local || echo gloo) \
    --set elastic.max_restarts=0 >log.txt 2>&1 &
  launcher=$!
  seen=$(checkpoints_in run/checkpoints 2>/dev/null | head -1 || true)
  has_new_checkpoint() {
    [ "$(checkpoints_in run/checkpoints 2>/dev/null | head -1 || true)" != "$seen" ] ||
      [ ! -d /proc/$launcher ] || [ -e run/model ]
  }
  wait_for has_new_checkpoint
  for pid in $(workers_of $launcher) $launcher; do kill -KILL "$pid" 2>/dev/null || true; done
  wait $launcher 2>/dev/null || true
  launcher=""
done
[ "$(sha256_of run)" = "$expected" ] || fail "different bits after $attempt attempts"
[ $attempt -gt 2 ] || fail "it was killed only $((attempt - 1)) times"

# A finished run goes on as one that was longer from the beginning: the evaluation at its end does
# not count unless it is due anyway. With keep_best it goes on from the best model.
for keep in false true; do
  sized=("${plateau[@]}" --set training.keep_best=$keep)
  $renzan train small.yaml --run-dir longer-$keep "${sized[@]}" 2>/dev/null
  $renzan train small.yaml --run-dir goes-on-$keep "${sized[@]}" --set training.max_steps=50 2>/dev/null
  $renzan train small.yaml --run-dir goes-on-$keep "${sized[@]}" 2>log.txt
  expect_log "resuming from"
  [ "$(sha256_of goes-on-$keep)" = "$(sha256_of longer-$keep)" ] || fail "going on, keep_best: $keep"
done

# Other evaluations would give other rates.
expect_exit 78 "training.eval_every is 9 there and 8 here (evaluations change the learning rates" \
  $renzan train small.yaml --run-dir goes-on-false "${plateau[@]}" --set training.epochs=14 \
  --set training.eval_every=8
$renzan data synth --format dataset --seed 9 --rows 4000 --output other >/dev/null
expect_exit 78 "evaluate as before" $renzan train small.yaml --run-dir goes-on-false \
  "${plateau[@]}" --set training.epochs=14 --set data.eval.path=other
expect_exit 0 "is already trained to step" \
  $renzan train small.yaml --run-dir goes-on-false "${plateau[@]}"
for keep in false true; do
  expect_exit 78 "evaluate as before" $renzan train small.yaml --run-dir goes-on-$keep \
    "${plateau[@]}" --set training.keep_best=$keep --set data.eval.path=other
done
expect_exit 78 "the other keys of plateau do nothing" $renzan train small.yaml --run-dir none \
  "${plateau[@]}" --set optimizer.schedule.plateau.patience=0
expect_exit 78 "needs data.eval.path" $renzan train small.yaml --run-dir none "${plateau[@]}" \
  --set data.eval.path=
expect_exit 78 "has type ftrl, whose learning rate is constant" $renzan train small.yaml \
  --run-dir none "${plateau[@]}" --set optimizer.sparse.type=ftrl
[ ! -e none ] || fail "an invalid configuration created a run directory"
