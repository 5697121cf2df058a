# The first ten losses of a small DLRM are PyTorch's (tests/golden/make_golden recorded them).
source "$(dirname "$0")/lib.sh" "$@"
golden=$source_root/tests/golden
$renzan data synth --format dataset --seed 42 --rows 640 --output data >/dev/null
$renzan train "$golden/dlrm.yaml" --run-dir run 2>/dev/null
python3 - "$golden/dlrm_losses.json" <<'PY'
import json, sys
golden = json.load(open(sys.argv[1]))
recorded = list(json.load(open("run/manifest.json"))["datasets"].values())[0]
assert recorded == golden["dataset"], "the generated data changed: run tests/golden/make_golden"
losses = [json.loads(line)["train/loss"] for line in open("run/metrics.jsonl")]
assert len(losses) == len(golden["losses"]) == 10
for ours, theirs in zip(losses, golden["losses"]):
    assert abs(ours - theirs) < 2e-6 * max(1, abs(theirs)), (losses, golden["losses"])
print("largest difference", max(abs(a - b) for a, b in zip(losses, golden["losses"])))
PY
