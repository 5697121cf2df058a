# renzan train --profile writes a trace of whole steps of all workers that a viewer can read, and does
# not change the model.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 20000 --output data >/dev/null
cat >run.yaml <<YAML
data: {train: {path: data}}
training: {batch_size: 512, max_steps: 20}
YAML
$renzan train run.yaml --run-dir plain >plain.txt 2>&1 || fail "$(cat plain.txt)"
$renzan train run.yaml --run-dir run --workers 2 --threads 2 --profile 3 >log.txt 2>&1 ||
  fail "$(cat log.txt)"
grep -q 'wrote a trace of 3 steps to run/profile.json' log.txt || fail "$(cat log.txt)"
cmp plain/model/dense.safetensors run/model/dense.safetensors || fail "the model changed"
python3 - <<'PYTHON' || fail "the trace is wrong"
import json
events = json.load(open("run/profile.json"))["traceEvents"]
spans = [e for e in events if e["ph"] == "X"]
threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
for worker in 0, 1:
    steps = [e for e in spans if e["name"] == "step" and e["pid"] == worker]
    assert len(steps) == 3, steps
    assert {threads[e["pid"], e["tid"]] for e in steps} == {"main thread"}
    inside = lambda e, outer: outer["ts"] <= e["ts"] and e["ts"] + e["dur"] <= outer["ts"] + outer["dur"]
    for name in ("input_dist", "lookup", "output_dist", "forward and backward", "top.0",
                 "reduce dense gradients", "sparse update", "dense update"):
        found = [e for e in spans if e["name"] == name and e["pid"] == worker]
        assert len(found) >= 3, (name, found)
        assert all(any(inside(e, step) for step in steps) for e in found), name
    assert any(threads[e["pid"], e["tid"]] == "worker thread 1" and e["name"] == "forward"
               for e in spans if e["pid"] == worker)
# The workers share a clock: their first steps overlap.
first = [min((e for e in spans if e["name"] == "step" and e["pid"] == w), key=lambda e: e["ts"])
         for w in (0, 1)]
assert first[0]["ts"] < first[1]["ts"] + first[1]["dur"] and first[1]["ts"] < first[0]["ts"] + first[0]["dur"]
PYTHON

# A run that is too short says so.
$renzan train run.yaml --set training.max_steps=4 --run-dir short --profile 3 >log.txt 2>&1 ||
  fail "$(cat log.txt)"
grep -q 'no trace was written: --profile records after the first 5 steps' log.txt ||
  fail "$(cat log.txt)"

# A trace that cannot be written does not end the training.
mkdir -p blocked/profile.json/x
$renzan train run.yaml --run-dir blocked --profile 3 >log.txt 2>&1 || fail "$(cat log.txt)"
grep -q 'no trace was written: ' log.txt || fail "$(cat log.txt)"
cmp plain/model/dense.safetensors blocked/model/dense.safetensors || fail "the model changed"
