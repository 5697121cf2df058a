# optimizer.sparse.rows: all. Every row takes every step, later: the model is the same on any
# placement, however often rows are looked at and saved in between, and however often the run is
# killed; and it is another one than that of the rows of the batches alone.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 8 --rows 4000 --output data >/dev/null
small_config data
train() {
  $renzan train small.yaml "${of[@]}" "$@" >log.txt 2>&1 || { show_log; fail "train $*"; }
}
schedule=(--set optimizer.schedule.warmup_steps=7 --set training.epochs=6 --set training.eval_every=10
  --set optimizer.schedule.plateau.metric=auc --set optimizer.schedule.plateau.patience=1
  --set optimizer.schedule.plateau.min_delta=0.02 --set optimizer.schedule.plateau.factor=0.5)
blocks=(--set numerics.row_blocks=4 --set numerics.column_blocks=2)
all=(--set optimizer.sparse.rows=all)

for kind in adam adam_l2; do
  base=("${blocks[@]}" --set optimizer.sparse.type=adam --set optimizer.sparse.learning_rate=0.02)
  plans="row_wise column_wise"
  if [ $kind = adam_l2 ]; then
    base+=(--set optimizer.sparse.weight_decay=0.001 --set optimizer.sparse.weight_decay_mode=l2)
    plans="replicated table_row_wise"
  fi
  of=("${base[@]}" "${schedule[@]}")
  train --run-dir $kind.touched
  of+=("${all[@]}")
  train --run-dir $kind --threads 1
  expect_log "the learning rates are 0.5 of the schedule's"
  expected=$(sha256_of $kind)
  [ "$(sha256_of $kind.touched)" != "$expected" ] || fail "$kind: other rows do not move"

  # On other placements, and saved in between: increments, too.
  for plan in $plans; do
    train --run-dir $kind.$plan --workers 3 --threads 1 --backend gloo --set sharding.default=$plan \
      --set checkpoint.every_steps=9
    [ "$(sha256_of $kind.$plan)" = "$expected" ] || fail "$kind: another model, $plan"
  done

  # Resumed on other numbers of workers.
  for stop in 13 41; do
    workers=$((stop % 3 + 1))
    train --run-dir $kind.resumed --workers $workers --threads 1 --set training.max_steps=$stop \
      --backend $([ $workers = 1 ] && echo local || echo gloo)
  done
  train --run-dir $kind.resumed
  expect_log "resuming from"
  [ "$(sha256_of $kind.resumed)" = "$expected" ] || fail "$kind: another model when resumed"

  # Killed, too.
  attempt=0
  until [ $kind = adam ] || [ -e $kind.killed/model ]; do
    attempt=$((attempt + 1))
    [ $attempt -le 40 ] || fail "no end after $attempt attempts"
    $renzan train small.yaml "${of[@]}" --run-dir $kind.killed --set checkpoint.every_steps=9 \
      --set checkpoint.keep=1 >log.txt 2>&1 &
    launcher=$!
    seen=$(checkpoints_in $kind.killed/checkpoints 2>/dev/null | head -1 || true)
    has_new_checkpoint() {
      [ "$(checkpoints_in $kind.killed/checkpoints 2>/dev/null | head -1 || true)" != "$seen" ] ||
        [ ! -d /proc/$launcher ] || [ -e $kind.killed/model ]
    }
    wait_for has_new_checkpoint
    for pid in $(workers_of $launcher) $launcher; do kill -KILL "$pid" 2>/dev/null || true; done
    wait $launcher 2>/dev/null || true
    launcher=""
  done
  [ $kind = adam ] || [ "$(sha256_of $kind.killed)" = "$expected" ] || fail "$kind: another model when killed"

  # Whether rows were looked at or saved in between does not matter.
  of=("${base[@]}" "${all[@]}" --set training.epochs=2)
  train --run-dir $kind.unseen
  train --run-dir $kind.seen --set training.eval_every=3 --set checkpoint.every_steps=4
  [ "$(sha256_of $kind.seen)" = "$(sha256_of $kind.unseen)" ] || fail "$kind: looking changes rows"
done

# Without weight decay, SGD and Adagrad leave other rows alone: it is the same as `touched`.
of=(--set optimizer.sparse.type=adagrad)
train --run-dir touched
train --run-dir all "${all[@]}"
[ "$(sha256_of touched)" = "$(sha256_of all)" ] || fail "adagrad"

# A model's rows are up to date: a run of no steps that starts from it changes none of them.
of=("${all[@]}" --set optimizer.sparse.type=adam)
train --run-dir first
train --run-dir none --initialize-from first --set training.max_steps=0
$renzan checkpoint diff first/model none/model >diff.txt 2>&1 || true
grep -q "differing: 0 of" diff.txt || { cat diff.txt >&2; fail "rows moved without a step"; }

# Every step sees the same batch: two steps, and two more in a run that starts from their model, are
# four steps, also of rows that no batch looks up.
of=("${all[@]}" --set optimizer.sparse.type=adam --set optimizer.sparse.weight_decay=0.01
  --set optimizer.sparse.weight_decay_mode=l2 --set data.train.rows=[0,1024] --set data.shuffle=false
  --set training.batch_size=1024 --set training.epochs=4)
train --run-dir four
train --run-dir two --set training.max_steps=2
train --run-dir more --set training.max_steps=2 --initialize-from two
expect_exit 1 "differing: 0 of" $renzan checkpoint diff four/model more/model

echo 'workers_per_host: 1' >topology.yaml
expect_exit 78 "device: cuda does not support optimizer.sparse.rows: all" $renzan plan small.yaml \
  "${all[@]}" --set device=cuda --topology topology.yaml
expect_exit 78 "rows must be touched with type: rowwise_adagrad" $renzan train small.yaml \
  --run-dir refused "${all[@]}" --set optimizer.sparse.type=rowwise_adagrad
expect_exit 78 "which needs numerics.embedding_precision: fp32" $renzan train small.yaml \
  --run-dir refused "${all[@]}" --set numerics.embedding_precision=fp16
expect_exit 78 "optimizer.sparse.rows is touched there and all here" $renzan train small.yaml \
  --run-dir touched "${all[@]}" --set optimizer.sparse.type=adagrad --set training.epochs=2
[ ! -e refused ] || fail "a refused run wrote something"
