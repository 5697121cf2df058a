# Early stopping and keep_best: the saved model is that of the best evaluation, bit-identical to
# that of a run that ends there, on any placement and even if the run is killed repeatedly.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 8 --rows 4000 --output data >/dev/null
small_config data
# Many epochs at a high learning rate overfit.
watch=(--set training.epochs=40 --set training.eval_every_epochs=0.5 --set training.keep_best=true
  --set training.early_stopping.patience=4 --set optimizer.sparse.type=adagrad
  --set optimizer.sparse.learning_rate=0.2 --set checkpoint.every_steps=7 --set checkpoint.keep=1)

$renzan train small.yaml --run-dir reference "${watch[@]}" 2>log.txt || { cat log.txt >&2; fail "training"; }
expected=$(sha256_of reference)
best=$(sed -n 's/.*the model is the one of step \([0-9]*\), with the best log_loss.*/\1/p' log.txt)
end=$(sed -n 's/.*stopped early at step \([0-9]*\): .*/\1/p' log.txt)
[ -n "$best" ] && [ -n "$end" ] || { cat log.txt >&2; fail "no best step, or no early end"; }
# 11 steps are an epoch; a patience of 4 evaluations is 2 of them.
[ "$end" -eq $((best + 22)) ] || { cat log.txt >&2; fail "the best at $best, the end at $end"; }
[ "$end" -lt 440 ] || fail "trained to the end"
[ "$(status_of state reference)" = done ] || fail "status.json says $(status_of state reference)"
[ "$(status_of step reference)" = "$(status_of steps reference)" ] || fail "status.json: not all steps"

# metrics.jsonl has the same best evaluation.
python3 - "$best" <<'PY' || fail "metrics.jsonl has a better one"
import json, sys
evaluations = [json.loads(line) for line in open("reference/metrics.jsonl") if "eval/loss" in line]
assert min(evaluations, key=lambda e: e["eval/loss"])["step"] == int(sys.argv[1]), evaluations
PY

# A run without early stopping that ends at the best step saves the same model.
$renzan train small.yaml --run-dir shorter "${watch[@]}" --set training.keep_best=false \
  --set training.early_stopping.patience=0 --set training.max_steps="$best" 2>/dev/null
[ "$(sha256_of shorter)" = "$expected" ] || fail "the best model is not the one of step $best"

# On another placement.
$renzan train small.yaml --run-dir elsewhere "${watch[@]}" --workers 3 --threads 1 --backend gloo \
  2>/dev/null
[ "$(sha256_of elsewhere)" = "$expected" ] || fail "different bits with three workers"

# Without keep_best, the model is the last one.
$renzan train small.yaml --run-dir last "${watch[@]}" --set training.keep_best=false 2>log.txt
expect_log "stopped early at step $end"
$renzan train small.yaml --run-dir until "${watch[@]}" --set training.keep_best=false \
  --set training.early_stopping.patience=0 --set training.max_steps="$end" 2>/dev/null
[ "$(sha256_of last)" = "$(sha256_of until)" ] || fail "early stopping changed the model"

# A finished run is not repeated, even with more epochs, which would end at the same step.
expect_exit 0 "is already trained, and its model is the best evaluation's, of step $best" $renzan train small.yaml --run-dir reference \
  "${watch[@]}"
expect_exit 0 "is already trained to step $end" $renzan train small.yaml --run-dir last \
  "${watch[@]}" --set training.keep_best=false --set training.epochs=80
[ "$(sha256_of reference)" = "$expected" ] || fail "trained again"
# Other evaluations might have chosen another model, or another end.
expect_exit 78 "is already trained, and its model was chosen by metrics of other data" \
  $renzan train small.yaml --run-dir reference "${watch[@]}" --set data.eval.rows=[3500,4000]
expect_exit 78 "is already trained, and its end was decided by metrics of other data" \
  $renzan train small.yaml --run-dir last "${watch[@]}" --set training.keep_best=false \
  --set data.eval.rows=[3500,4000]
[ "$(sha256_of reference)" = "$expected" ] || fail "trained again"

# Killed at any step, on any placement: it ends with the same model at the same step.
attempt=0 total=0
until [ -e run/model ]; do
  attempt=$((attempt + 1)) total=$((total + 1))
  [ $total -le 60 ] || fail "no end after $total attempts"
  workers=$((attempt % 3 + 1))
  $renzan train small.yaml --run-dir run "${watch[@]}" --workers $workers --threads 1 \
    --backend $([ $workers = 1 ] && echo local || echo gloo) --set elastic.max_restarts=0 \
    >log.txt 2>&1 &
  launcher=$!
  # The next checkpoint, or the end.
  seen=$(checkpoints_in run/checkpoints 2>/dev/null | head -1 || true)
  has_new_checkpoint() {
    [ "$(checkpoints_in run/checkpoints 2>/dev/null | head -1 || true)" != "$seen" ] ||
      [ ! -d /proc/$launcher ] || [ -e run/model ]
  }
  wait_for has_new_checkpoint
  for pid in $(workers_of $launcher) $launcher; do kill -KILL "$pid" 2>/dev/null || true; done
  wait $launcher 2>/dev/null || true
  launcher=""
  # The first attempt finished before it was killed: try again.
  if [ -e run/model ] && [ $attempt = 1 ]; then rm -rf run && attempt=0; fi
done
[ "$(sha256_of run)" = "$expected" ] || fail "different bits after $attempt attempts"

$renzan train small.yaml --run-dir run "${watch[@]}" 2>log.txt
expect_log "a larger training.early_stopping.patience continues it"

# With more patience it continues, to the step at which a run with that patience ends.
more=(--set training.early_stopping.patience=9)
$renzan train small.yaml --run-dir patient "${watch[@]}" "${more[@]}" 2>/dev/null
$renzan train small.yaml --run-dir run "${watch[@]}" "${more[@]}" 2>log.txt
expect_log "resuming from"
[ "$(sha256_of run)" = "$(sha256_of patient)" ] || fail "different bits after more patience"

# A longer run does not evaluate where a shorter one ended, unless that step is due anyway: what the
# shorter run found there does not count for the longer one.
sooner=(--set training.eval_every=9 --set training.keep_best=true
  --set optimizer.sparse.type=adagrad --set optimizer.sparse.learning_rate=0.5)
$renzan train small.yaml --run-dir longer "${sooner[@]}" --set training.epochs=3 2>/dev/null
$renzan train small.yaml --run-dir continued "${sooner[@]}" --set training.epochs=1 2>log.txt
grep -q "eval at step 11: .*the best so far" log.txt || fail "step 11 is not the best: $(cat log.txt)"
$renzan train small.yaml --run-dir continued "${sooner[@]}" --set training.epochs=3 2>log.txt
expect_log "resuming from"
[ "$(sha256_of continued)" = "$(sha256_of longer)" ] || fail "continuing changed the best model"

# Invalid configurations.
expect_exit 78 "need data.eval.path" $renzan train small.yaml --run-dir none \
  --set training.keep_best=true --set data.eval.path= --set training.eval_every=5
expect_exit 78 "need eval_every or eval_every_epochs" $renzan train small.yaml --run-dir none \
  --set training.early_stopping.patience=3
expect_exit 78 "choose one" $renzan train small.yaml --run-dir none \
  --set training.eval_every_epochs=1 --set training.eval_every=5
expect_exit 78 "the best model must be exact" $renzan train small.yaml --run-dir none \
  --set training.eval_every=5 --set training.keep_best=true --set checkpoint.quantize=int8
expect_exit 78 "did you mean 'auc'" $renzan train small.yaml --run-dir none \
  --set training.early_stopping.metric=auk
[ ! -e none ] || fail "an invalid configuration created a run directory"
