# Training with device: cuda: the same bits again, after kills and on several workers that share the
# GPU; checkpoints and models that cross between GPU and CPU; one clear error for whatever is
# missing. Skipped without a GPU, except for that error.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 6000 --output data >/dev/null
small_config data
cuda=(--set device=cuda --set model.embedding_dim=16 --set training.epochs=30)

# How large a GPU's memory has to be is known beforehand.
echo 'gpu_memory_gib: 0.1' >tiny.yaml
expect_exit 71 "IT DOES NOT FIT" $renzan plan small.yaml --topology tiny.yaml "${cuda[@]}"
echo 'gpu_memory_gib: 40' >large.yaml
$renzan plan small.yaml --topology large.yaml "${cuda[@]}" --json |
  python3 -c 'import json, sys; gpu = json.load(sys.stdin)["gpu"]
sys.exit(not (gpu["fits"] and gpu["has_tables"]))' || fail "a GPU of 40 GiB is too small"

# A library for GPUs left over from another build: one from before builds had names, and one that
# differs in nothing else.
mkdir -p other/bin other/lib
cp "$renzan" other/bin/renzan
library=other/lib/librenzan_cuda.so
echo 'unsigned long long renzan_cuda_interface() { return 1; }' |
  ${CC:-cc} -shared -fPIC -x c -o $library -
expect_exit 78 "is of another build than this program (unknown, not" \
  other/bin/renzan train small.yaml --run-dir none "${cuda[@]}"
ours=$(dirname "$renzan")/../lib/librenzan_cuda.so
if [ -e "$ours" ]; then
  build=$($renzan --version | sed -n 's/.*build \([0-9a-f]\{12\}\).*/\1/p')
  [ -n "$build" ] || fail "the program does not say its build"
  sed "s/$build/0123456789ab/g" "$ours" >$library
  cmp -s "$ours" $library && fail "the library for GPUs does not say its build"
  expect_exit 78 "is of another build than this program (0123456789ab, not $build)" \
    other/bin/renzan train small.yaml --run-dir none "${cuda[@]}"
fi

if ! $renzan doctor --json | python3 -c '
import json, sys
found = {check["name"]: check for check in json.load(sys.stdin)["checks"]}["training on GPUs"]
sys.exit(found["state"] != "ok")'; then
  for workers in 1 2; do
    expect_exit 78 "use device: cpu" \
      $renzan train small.yaml --run-dir none --workers $workers "${cuda[@]}"
    ! grep -q restarting out.txt || fail "a machine without a GPU will have none the next time"
  done
  [ ! -e none/model ] || fail "a run without a GPU left a model"
  expect_exit 78 "needs device: cuda" \
    $renzan train small.yaml --run-dir none --set numerics.precision=tf32
  skip "no GPU"
fi

for precision in fp32 bf16 tf32; do
  options=("${cuda[@]}" --set "numerics.precision=$precision")
  rm -rf whole again workers
  $renzan train small.yaml --run-dir whole "${options[@]}" 2>whole.txt ||
    { cat whole.txt >&2; fail "cannot train in $precision"; }
  expected=$(sha256_of whole)
  $renzan train small.yaml --run-dir again "${options[@]}" 2>/dev/null
  [ "$(sha256_of again)" = "$expected" ] || fail "$precision: other bits the second time"

  rm -rf run
  often=(--set checkpoint.every_steps=20)
  for signal in KILL TERM; do
    train_in_background "${options[@]}" "${often[@]}"
    kill -$signal $launcher
    wait $launcher || true
  done
  launcher=""
  $renzan train small.yaml --run-dir run "${options[@]}" "${often[@]}" 2>log.txt ||
    { cat log.txt >&2; fail "cannot resume"; }
  [ "$(sha256_of run)" = "$expected" ] || fail "$precision: other bits after kills"

  for workers in 2 3; do
    rm -rf workers
    $renzan train small.yaml --run-dir workers --workers $workers --threads 1 --backend gloo \
      "${options[@]}" 2>workers.txt || { cat workers.txt >&2; fail "$workers workers"; }
    [ "$(sha256_of workers)" = "$expected" ] || fail "$precision: other bits on $workers workers"
  done
done

# Divergence is one error, and nothing that is not finite is saved.
expect_exit 70 "learning_rate" $renzan train small.yaml --run-dir nan "${cuda[@]}" \
  --set optimizer.dense.learning_rate=1e6 --set optimizer.sparse.learning_rate=1e6
[ ! -e nan/model ] || fail "a diverged run left a model"

# A GPU's model predicts the same on the CPU, and its checkpoint resumes there, with a warning.
rm -rf whole
$renzan train small.yaml --run-dir whole "${cuda[@]}" 2>/dev/null
auc() {
  $renzan eval whole/model --data data --json "$@" |
    python3 -c 'import json, sys; print("%.4f" % json.load(sys.stdin)["auc"])'
}
[ "$(auc)" = "$(auc --set device=cpu)" ] || fail "AUC $(auc) on the GPU, $(auc --set device=cpu) on the CPU"
rm -rf crosses
$renzan train small.yaml --run-dir crosses "${cuda[@]}" --set training.max_steps=20 2>/dev/null
$renzan train small.yaml --run-dir crosses "${cuda[@]}" --set device=cpu 2>crosses.txt ||
  { cat crosses.txt >&2; fail "a GPU's checkpoint does not resume on the CPU"; }
grep -q "may differ in its last bits" crosses.txt || fail "no warning about other bits"

# Losses of PyTorch on a CPU, compared as tests/e2e/golden_test.sh does.
golden=$source_root/tests/golden
$renzan data synth --format dataset --seed 42 --rows 640 --output data42 >/dev/null
for config in "$golden"/*.yaml; do
  name=$(basename "$config" .yaml)
  if [[ $name = *mixed_dims ]]; then
    expect_exit 78 "not a multiple of 8" $renzan train "$config" --run-dir $name \
      --set device=cuda --set data.train.path=data42
    continue
  fi
  if [[ ! $name =~ ^(dlrm|dlrm_adagrad|dlrm_adam|dcnv2)$ ]]; then
    expect_exit 78 "device: cuda" $renzan train "$config" --run-dir $name \
      --set device=cuda --set data.train.path=data42
    continue
  fi
  $renzan train "$config" --run-dir $name --set device=cuda --set data.train.path=data42 \
    2>log.txt || fail "$name: $(cat log.txt)"
  python3 "$golden/compare.py" "$golden/$name.json" $name
done
