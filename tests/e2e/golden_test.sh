# The first ten losses of small models, and the most frequent row of each table after them, equal
# those of PyTorch (recorded by tests/golden/make_golden): both models, every dense optimizer, and
# deduplicated sparse updates of rows that occur in many samples of a batch.
source "$(dirname "$0")/lib.sh" "$@"
golden=$source_root/tests/golden
$renzan data synth --format dataset --seed 42 --rows 640 --output data >/dev/null
for config in "$golden"/*.yaml; do
  name=$(basename "$config" .yaml)
  $renzan train "$config" --run-dir $name 2>log.txt || fail "$name: $(cat log.txt)"
  python3 - "$golden/$name.json" $name <<'PY'
import json, struct, sys
import numpy as np
golden, run = json.load(open(sys.argv[1])), sys.argv[2]
recorded = list(json.load(open(run + "/manifest.json"))["datasets"].values())[0]
assert recorded == golden["dataset"], "the generated data changed: run tests/golden/make_golden"
losses = [json.loads(line)["train/loss"] for line in open(run + "/metrics.jsonl")]
assert len(losses) == len(golden["losses"]) == 10
for ours, theirs in zip(losses, golden["losses"]):
    assert abs(ours - theirs) < 2e-6 * max(1, abs(theirs)), (run, losses, golden["losses"])
error = 0
for feature, expected in golden["rows"].items():
    with open(f"{run}/model/table.{feature}.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    entry = header[f"embedding.{feature}.weight"]
    table = np.frombuffer(data[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
    ours, theirs = table[expected["row"]], np.array(expected["values"])
    error = max(error, np.abs(ours - theirs).max())
    # Adagrad divides a row's first gradient by its magnitude, which amplifies rounding errors. An
    # update per lookup would be off by about the learning rate, a thousand times as much.
    assert error < 2e-5, (run, feature, ours, theirs)
most = max(row["most_in_a_batch"] for row in golden["rows"].values())
assert most > 5, "no row is looked up often in a batch"
print(run, "largest difference of losses", max(abs(a - b) for a, b in zip(losses, golden["losses"])),
      "and of rows", error, "; looked up in a batch", most)
PY
done
