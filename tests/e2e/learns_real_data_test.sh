# On real click logs a small DLRM beats logistic regression on hashed features (the figures of the
# data's README: a floor).
source "$(dirname "$0")/lib.sh" "$@"
[ -d "$shared_data" ] || skip "no $shared_data"
data=$shared_data

# run NAME ROWS TRAIN_ROWS FLOOR OVERRIDE...
run() {
  local name=$1 rows=$2 train=$3 floor=$4
  shift 4
  local set=()
  for override in "$@"; do set+=(--set "$override"); done
  cat >real.yaml <<YAML
seed: 1
data:
  train: {path: $name, rows: [0, $train]}
  eval: {path: $name, rows: [$train, $rows]}
model: {embedding_dim: 4, bottom_mlp: [32, 16], top_mlp: [32, 16]}
training: {batch_size: 128, log_every: 20}
optimizer:
  dense: {type: adam, learning_rate: 0.001}
  sparse: {type: adagrad, learning_rate: 0.02}
YAML
  $renzan train real.yaml --run-dir "run_$name" "${set[@]}" 2>log.txt || { cat log.txt; fail "$name"; }
  python3 - "$name" "run_$name/metrics.jsonl" "$floor" <<'PY'
import json, sys
name, path, floor = sys.argv[1], sys.argv[2], float(sys.argv[3])
last = [json.loads(line) for line in open(path) if "eval/auc" in line][-1]
print(f"{name}: AUC {last['eval/auc']:.4f} (floor {floor}), log loss {last['eval/loss']:.4f}")
assert last["eval/auc"] > floor
PY
}

$renzan data import --format criteo --vocabulary hash:5000 --output head10k \
  "$data/criteo_kaggle_head10k/train_head10000.txt.gz" >/dev/null
run head10k 10000 8000 0.739
