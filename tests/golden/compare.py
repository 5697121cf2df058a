"""compare.py GOLDEN.json RUN [EVALUATION.json]: fails unless a run's losses and most frequent rows
equal those of PyTorch, and the loss of its model afterwards where it was recorded. Needs no
library."""
import array
import json
import struct
import sys

golden, run = json.load(open(sys.argv[1])), sys.argv[2]
recorded = list(json.load(open(run + "/manifest.json"))["datasets"].values())[0]
assert recorded == golden["dataset"], "the generated data changed: run tests/golden/make_golden"
losses = [json.loads(line)["train/loss"] for line in open(run + "/metrics.jsonl")]
assert len(losses) == len(golden["losses"]) == 10
for ours, theirs in zip(losses, golden["losses"]):
    assert abs(ours - theirs) < 2e-6 * max(1, abs(theirs)), (run, losses, golden["losses"])
if "evaluation" in golden:
    evaluated, expected = json.load(open(sys.argv[3]))["log_loss"], golden["evaluation"]
    assert abs(evaluated - expected) < 2e-6 * max(1, expected), (run, evaluated, expected)
error = 0
for feature in golden["rows"]:
    with open(f"{run}/model/table.{feature}.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    entry = header[f"embedding.{feature}.weight"]
    width = entry["shape"][1]
    table = array.array("f", data[slice(*entry["data_offsets"])])
    for expected in [golden["rows"][feature], *golden.get("idle", {}).get(feature, [])]:
        ours = table[expected["row"] * width:(expected["row"] + 1) * width]
        error = max([error] + [abs(a - b) for a, b in zip(ours, expected["values"], strict=True)])
        # Adagrad divides a row's first gradient by its magnitude, which amplifies rounding errors.
        # An update per lookup would be off by about the learning rate, a thousand times as much.
        assert error < 2e-5, (run, feature, expected["row"], ours, expected["values"])
most = max(row["most_in_a_batch"] for row in golden["rows"].values())
assert most > 5, "no row is looked up often in a batch"
print(run, "largest difference of losses", max(abs(a - b) for a, b in zip(losses, golden["losses"])),
      "and of rows", error, "; looked up in a batch", most)
