# The sharding plan never changes the result: the same SHA-256 under every sharding, over backends
# and kills, with the real program. Also plans as files, their errors, and runs that do not fit into
# memory.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 6 --rows 4000 --multi-hot 3 --output data >/dev/null
small_config data
backends=$(several_worker_backends)
blocks=(--set numerics.row_blocks=8 --set numerics.column_blocks=2 --set training.max_steps=8
  --set optimizer.sparse.type=rowwise_adagrad --set comm.forward=fp16 --set comm.backward=bf16
  --set optimizer.max_gradient_norm=0.5)
train() { # RUN FLAG...
  local run=$1
  shift
  $renzan train small.yaml --run-dir $run "${blocks[@]}" "$@" >log.txt 2>&1
}
expect_same() { # WHAT RUN
  [ "$(sha256_of $2)" = "$expected" ] || fail "$1: another model"
}

train one || fail "$(cat log.txt)"
expected=$(sha256_of one)
for backend in $backends; do
  for sharding in auto table_wise row_wise column_wise table_row_wise replicated; do
    rm -rf run
    train run --workers 3 --backend $backend --set sharding.default=$sharding ||
      fail "$backend, $sharding: $(cat log.txt)"
    expect_same "$backend, $sharding" run
  done
  rm -rf run
  train run --workers 4 --backend $backend --set sharding.default=row_wise \
    --set 'sharding.tables={C1: replicated, C2: column_wise, M1: table_wise}' ||
    fail "$backend, mixed: $(cat log.txt)"
  expect_same "$backend, mixed" run
done

# Rows in 8 and 4 bits, which share a scale per row.
integers=(--set comm.forward=int8 --set comm.backward=int4)
train integers "${integers[@]}" || fail "$(cat log.txt)"
integers_expected=$(sha256_of integers)
[ "$integers_expected" != "$expected" ] || fail "comm.forward: int8 changed nothing"
for backend in $backends; do
  rm -rf run
  train run --workers 3 --backend $backend "${integers[@]}" \
    --set 'sharding.tables={C1: replicated, C2: column_wise, C3: row_wise, M1: table_wise}' ||
    fail "$backend, integers: $(cat log.txt)"
  [ "$(sha256_of run)" = "$integers_expected" ] || fail "$backend, integers: another model"
done

# Error feedback, and a warning where rounding errors are large.
train feedback "${integers[@]}" --set comm.error_feedback_rows=256 || fail "$(cat log.txt)"
[ "$(sha256_of feedback)" != "$integers_expected" ] || fail "error feedback changed nothing"
# Residuals are not part of the model.
$renzan eval feedback --data data --rows 3000 4000 >log.txt 2>&1 || fail "$(cat log.txt)"
$renzan checkpoint export feedback/model --output feedback.safetensors >log.txt 2>&1 || fail "$(cat log.txt)"
! grep -q error_feedback <(head -c 100000 feedback.safetensors) || fail "exported residuals"
$renzan checkpoint diff feedback integers >log.txt 2>&1 && fail "no difference"
! grep -q error_feedback log.txt || fail "$(cat log.txt)"
train clamped --set comm.backward=fp16 --set comm.backward_scale=1099511627776 ||
  fail "$(cat log.txt)"
grep -q "the rounding error of the gradients of .* of their own noise" log.txt ||
  fail "no warning: $(cat log.txt)"
grep -q '"comm/backward_error_to_noise":[01][.]' clamped/metrics.jsonl || fail "$(cat clamped/metrics.jsonl)"
train clamped2 --set comm.backward=fp16 --set comm.backward_scale=1099511627776 \
  --set comm.guard=false || fail "$(cat log.txt)"
! grep -q "rounding error" log.txt || fail "warned without comm.guard"
[ "$(sha256_of clamped)" = "$(sha256_of clamped2)" ] || fail "comm.guard changed the model"

# A plan as a file; killed in the middle, resumed under another plan.
for workers in 2 3; do
  $renzan plan small.yaml --workers $workers --threads 1 "${blocks[@]}" --set sharding.default=row_wise \
    --output plan$workers.yaml >plan.txt
  grep -q "row_wise" plan.txt || fail "$(cat plan.txt)"
  grep -q "the bottleneck is" plan.txt || fail "$(cat plan.txt)"
  grep -q "model: [0-9.]* MFLOP for each sample" plan.txt || fail "$(cat plan.txt)"
done
rm -rf run
train run --workers 2 --backend gloo --plan plan2.yaml || fail "$(cat log.txt)"
expect_same "a plan file" run
rm -rf run killed
long=(--set training.max_steps=400 --set training.epochs=100 --set checkpoint.every_steps=4
  "${integers[@]}" --set comm.error_feedback_rows=256)
train whole "${long[@]}" || fail "$(cat log.txt)"
long_expected=$(sha256_of whole)
with_default_signals $renzan train small.yaml --run-dir run "${blocks[@]}" "${long[@]}" --workers 2 \
  --backend gloo --plan plan2.yaml >log.txt 2>&1 &
launcher=$!
has_a_checkpoint() { ls run/checkpoints/step-*/manifest.json >/dev/null 2>&1; }
wait_limit=60 wait_for has_a_checkpoint
for pid in $(workers_of $launcher) $launcher; do kill -KILL "$pid" 2>/dev/null || true; done
launcher=""
[ ! -e run/model ] || fail "it was killed too late"
# On a restart, a plan for another number of workers is ignored, since placement changes nothing.
train run "${long[@]}" --workers 3 --backend gloo --plan plan2.yaml || fail "$(cat log.txt)"
grep -q "plan2.yaml is a plan for 2 workers.*planning without it" log.txt || fail "$(cat log.txt)"
grep -q "resuming from step-" log.txt || fail "$(cat log.txt)"
[ "$(sha256_of run)" = "$long_expected" ] || fail "resumed under another plan: another model"
# The same before the first checkpoint: a worker is lost, and the other one starts again.
for attempt in 1 2 3; do # a busy machine may let it end before it is killed
  rm -rf run
  with_default_signals $renzan train small.yaml --run-dir run "${blocks[@]}" "${long[@]}" \
    --workers 2 --backend gloo --plan plan2.yaml --set checkpoint.every_steps=0 \
    --set checkpoint.every=0 --set elastic.min=1 --set elastic.backoff_seconds=0.1 >log.txt 2>&1 &
  launcher=$!
  wait_for trains_or_has_ended
  pid=$(workers_of $launcher | tail -n 1)
  [ -z "$pid" ] || kill -KILL $pid || true
  expect_end 0
  ! grep -q "planning without it" log.txt || break
done
grep -q "plan2.yaml is a plan for 2 workers, and there are 1; planning without it" log.txt ||
  fail "$(cat log.txt)"
[ "$(sha256_of run)" = "$long_expected" ] || fail "restarted without its plan: another model"
rm -rf run
RENZAN_ATTEMPT=1 train run --plan plan2.yaml || fail "$(cat log.txt)"
grep -q "plan2.yaml is a plan for 2 workers, and there are 1" log.txt || fail "$(cat log.txt)"
expect_same "a second attempt on another number of workers" run
expect_exit 78 "is a plan for 2 workers, not for 1" env RENZAN_ATTEMPT=0 $renzan train \
  small.yaml --run-dir first "${blocks[@]}" --plan plan2.yaml
# A run that resumes does not ignore a plan for another model.
sed 's/^workers: 2/workers: 1/; s/^  C1:/  D1:/' plan2.yaml >broken.yaml
rm -rf run
train run --set checkpoint.every_steps=4 || fail "$(cat log.txt)"
compgen -G "run/checkpoints/step-*/manifest.json" >/dev/null || fail "it has no checkpoint"
rm -r run/model
expect_exit 78 "has no table C1: it is a plan for another model" $renzan train small.yaml \
  --run-dir run "${blocks[@]}" --set checkpoint.every_steps=4 --plan broken.yaml

# One clear error each.
expect_exit 78 "needs a codec that rounds" $renzan train small.yaml --run-dir refused \
  --set comm.error_feedback_rows=256
expect_exit 78 "must be 0 or a power of two" $renzan train small.yaml --run-dir refused \
  --set comm.backward=int8 --set comm.error_feedback_rows=100
plan_fails() { # FRAGMENT SED-EXPRESSION
  sed "$2" plan2.yaml >broken.yaml
  expect_exit 78 "$1" $renzan train small.yaml --run-dir refused "${blocks[@]}" --workers 2 \
    --backend gloo --plan broken.yaml
}
plan_fails "is a plan for 3 workers, not for 2" 's/^workers: 2/workers: 3/'
plan_fails "has no table C1: it is a plan for another model" 's/^  C1:/  D1:/'
plan_fails "workers are 0 to 1, and -1 for all" 's/\[0, /[7, /'
plan_fails "one entry for each" 's/\[0, /[/'
plan_fails "did you mean 'tables'?" 's/^tables:/table:/'
expect_exit 66 "nowhere.yaml" $renzan train small.yaml --run-dir refused "${blocks[@]}" \
  --plan nowhere.yaml
expect_exit 78 "so it cannot be split by rows" $renzan train small.yaml --run-dir refused \
  --workers 2 --set sharding.default=row_wise
expect_exit 78 "allowed are auto, table_wise" $renzan train small.yaml --run-dir refused \
  --set sharding.tables.C1=by_row
expect_exit 78 "did you mean 'C1'?" $renzan train small.yaml --run-dir refused \
  --set sharding.tables.c1=row_wise
expect_exit 78 "must divide model.embedding_dim (8)" $renzan train small.yaml --run-dir refused \
  --set numerics.column_blocks=3
expect_exit 78 "must divide model.tables.C1.embedding_dim (3)" $renzan train small.yaml \
  --run-dir refused --set numerics.column_blocks=2 --set model.tables.C1.embedding_dim=3
expect_exit 78 "must be 0 or a power of two" $renzan train small.yaml --run-dir refused \
  --set numerics.row_blocks=6
[ ! -e refused/model ] || fail "a refused run has a model"

# Plans for machines that are not here.
printf 'hosts: 2\nworkers_per_host: 2\nmemory_gib: 0.05\n' >topology.yaml
$renzan plan small.yaml --topology topology.yaml "${blocks[@]}" >plan.txt || fail "$(cat plan.txt)"
grep -q "4 workers on 2 hosts, 29 tables" plan.txt || fail "$(cat plan.txt)"
$renzan plan small.yaml --topology topology.yaml "${blocks[@]}" --json |
  python3 -c 'import json, sys; plan = json.load(sys.stdin)
assert plan["fits"] and len(plan["workers"]) == 4 and len(plan["sharding"]) == 29, plan'
expect_exit 71 "IT DOES NOT FIT" $renzan plan small.yaml --topology topology.yaml "${blocks[@]}" \
  --set model.embedding_dim=512
$renzan plan small.yaml --topology topology.yaml --set training.batch_size=256 "${blocks[@]}" \
  --sweep workers=1..16 --svg sweep.svg >sweep.txt || fail "$(cat sweep.txt)"
[ "$(awk 'NR > 1 { print $1 ":" $2 }' sweep.txt | paste -sd' ')" = "1:1 2:1 4:2 8:4 16:8" ] ||
  fail "$(cat sweep.txt)"
python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("sweep.svg")'
expect_exit 64 "write workers=8..1024" $renzan plan small.yaml --sweep 8..16
expect_exit 64 "add --sweep" $renzan plan small.yaml --svg sweep.svg
expect_exit 64 "leave out --sweep" $renzan plan small.yaml --sweep workers=1..2 --output plan.yaml
echo 'host: 2' >misspelt.yaml
expect_exit 78 "did you mean 'hosts'?" $renzan plan small.yaml --topology misspelt.yaml
expect_exit 64 "describes 4 workers" $renzan plan small.yaml --topology topology.yaml --workers 3

# The examples: one fits; the other does not, and the program says what would help.
plans=$here/../../examples/plans
$renzan plan $plans/mlperf_dcnv2.yaml --topology $plans/8_workers.yaml >plan.txt ||
  fail "$(cat plan.txt)"
grep -q "of 64.00 GiB on the worker that needs most: it fits" plan.txt || fail "$(cat plan.txt)"
expect_exit 71 "of 37.00 GiB on the worker that needs most: IT DOES NOT FIT" \
  $renzan plan $plans/zionex_12t.yaml --topology $plans/zionex_128_workers.yaml
grep -q "^less memory with .* fits$" out.txt || fail "$(cat out.txt)"
grep -q "^1024 workers on 128 such machines, numerics.virtual_workers: 1024 .* yes$" out.txt || fail "$(cat out.txt)"

# A run that does not fit into memory is refused before it allocates any.
expect_exit 71 "MiB are available" $renzan train small.yaml --run-dir refused \
  --set 'model.top_mlp=[1000000, 100000]'
grep -q "worker    tables     dense" out.txt || fail "$(cat out.txt)"
expect_exit 71 "workers 0, 1 need" $renzan train small.yaml --run-dir refused --workers 2 \
  --set 'model.top_mlp=[1000000, 100000]'
! grep -q "restart" out.txt || fail "restarted in vain: $(cat out.txt)"
# Setting one table's blocks does not change its other settings.
$renzan train small.yaml --run-dir mean --set model.pooling=mean "${blocks[@]}" 2>log.txt ||
  fail "$(cat log.txt)"
$renzan train small.yaml --run-dir named --set model.pooling=mean "${blocks[@]}" \
  --set model.tables.M1.row_blocks=8 2>log.txt || fail "$(cat log.txt)"
[ "$(sha256_of mean)" = "$(sha256_of named)" ] || fail "model.tables.M1 changed its pooling"
