# From raw clicks to an AUC, with every file of a run directory; eval and predict agree with
# training.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format criteo --seed 5 --rows 4000 --output clicks.tsv.gz
$renzan data import --format criteo --vocabulary hash:500 --output data clicks.tsv.gz
small_config data
$renzan train small.yaml --run-dir run --set training.eval_every=4 2>log.txt || fail "$(cat log.txt)"
grep -q "AUC" log.txt || fail "no AUC during training"

$renzan eval run --data data --rows 3000 4000 --json >eval.json
$renzan predict run --data data --rows 3000 4000 --output scores.npy
$renzan predict run --data data --rows 3000 4000 --output scores.csv --workers 2
expect_exit 64 "must end in .csv, .npy or .parquet" $renzan predict run --data data --output scores.txt

python3 - <<'PY'
import json, struct, glob
import numpy as np
lines = [json.loads(line) for line in open("run/metrics.jsonl")]
steps = [line["step"] for line in lines if "train/loss" in line]
assert steps == [4, 8, 11], steps
evals = [line for line in lines if "eval/auc" in line]
assert [line["step"] for line in evals] == [4, 8, 11], evals
one = json.load(open("eval.json"))
assert abs(one["auc"] - evals[-1]["eval/auc"]) < 1e-12, (one, evals[-1])
assert abs(one["log_loss"] - evals[-1]["eval/loss"]) < 1e-9
status = json.load(open("run/status.json"))
assert status["state"] == "done" and status["step"] == status["steps"] == 11, status
manifest = json.load(open("run/manifest.json"))
for key in ("config", "datasets", "isa", "libraries", "seed", "hosts", "model_sha256"):
    assert manifest[key] or manifest[key] == 0, key
assert manifest["model_sha256"] == json.load(open("run/model/manifest.json"))["model_sha256"]
assert len(glob.glob("run/events.out.tfevents.*")) == 1

# The same AUC by counting pairs of scores, and the same scores from two workers as text.
scores = np.load("scores.npy")
assert scores.dtype == np.float32 and scores.shape == (1000,)
text = np.loadtxt("scores.csv", skiprows=1, dtype=np.float32)
assert np.array_equal(scores, text)
label = np.load(glob.glob("data/shard-*/label.npy")[0])[3000:4000]
order = scores.argsort(kind="stable")
ranks = np.empty(1000)
ranks[order] = np.arange(1, 1001)
p = label.sum()
auc = (ranks[label == 1].sum() - p * (p + 1) / 2) / (p * (1000 - p))
assert abs(auc - one["auc"]) < 1e-3, (auc, one["auc"])
PY

# A model trained with an instruction set that this machine lacks can be used with another one.
expect_exit 0 "AUC" $renzan eval run --data data --set numerics.isa=sse4
python3 - <<'PY'
import hashlib, json
manifest = json.load(open("run/model/manifest.json"))
def sha(text): return hashlib.sha256(text.encode()).hexdigest()
assert "isa: auto" in manifest["config"]
manifest["config"] = manifest["config"].replace("isa: auto", "isa: neon")
manifest["config_sha256"] = sha(manifest["config"])
del manifest["manifest_sha256"]
manifest["manifest_sha256"] = sha(json.dumps(manifest, separators=(",", ":"), ensure_ascii=False))
json.dump(manifest, open("run/model/manifest.json", "w"), ensure_ascii=False)
PY
for verb in eval "predict --output again.npy"; do
  expect_exit 78 "numerics.isa: " $renzan $verb run --data data
  expect_exit 0 "" $renzan $verb run --data data --set numerics.isa=auto
done
# The model itself cannot be changed.
expect_exit 64 "--set model.type: it is dlrm in run/model and cannot be changed" $renzan eval run \
  --data data --set numerics.isa=auto --set model.type=dlrm_dcnv2
expect_exit 78 "did you mean 'isa'" $renzan eval run --data data --set numerics.iza=auto
