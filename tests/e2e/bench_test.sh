# renzan bench: rates of the machine, and the phases of a step beside their minimum times.
source "$(dirname "$0")/lib.sh" "$@"
$renzan bench machine --json >machine.json || fail "bench machine"
$renzan bench machine --workers 2 --threads 1 --backend gloo >machine.txt 2>&1 || fail "$(cat machine.txt)"
grep -q '2 workers of 1 thread,' machine.txt || fail "$(cat machine.txt)"
grep -q 'all-to-all of 262144 bytes to each peer (gloo)' machine.txt || fail "$(cat machine.txt)"
$renzan bench machine --peers --json >peers.json || fail "$(cat peers.json)"
expect_exit 64 "cannot be spread evenly" $renzan bench machine --peers --workers 3 --hosts a,b
$renzan data synth --format dataset --seed 7 --rows 20000 --output data >/dev/null
small_config data
$renzan bench train small.yaml --steps 20 --json >train.json || fail "bench train"
$renzan bench train small.yaml --steps 20 --set workers=2 >train.txt 2>&1 || fail "$(cat train.txt)"
grep -q 'forward and backward' train.txt || fail "$(cat train.txt)"
$renzan bench train small.yaml --steps 70 --set optimizer.sparse.type=adam --set workers=2 \
  --set optimizer.sparse.rows=all --set optimizer.sparse.weight_decay=0.1 --json >all.json 2>log.txt ||
  fail "$(cat log.txt)"
[ ! -e runs ] || fail "bench train left a run behind"
python3 - <<'PYTHON' || fail "wrong figures"
import json
machine = json.load(open("machine.json"))
for key in ("matrix_float32_flops", "stream_bytes_per_second", "random_rows_64_bytes_per_second",
            "random_rows_512_bytes_per_second"):
    assert machine[key] > 1e6, machine
peers = {one["name"]: one for one in json.load(open("peers.json"))["transports"]}
for name, one in peers.items():
    assert one.get("problem") or all(0 < one["seconds"][size] < 10 for size in
                                     ("64", "262144", "4194304")), one
assert "seconds" in peers["Gloo, TCP"], peers
train = json.load(open("train.json"))
phases = {phase["phase"]: phase for phase in json.load(open("all.json"))["phases"]}
assert phases["catch up"]["seconds"] > 0 and phases["catch up"]["least_seconds"] > 0, phases
phases = {phase["phase"]: phase for phase in train["phases"]}
assert "catch up" not in phases, phases
assert all(phase["seconds"] >= 0 for phase in phases.values())
assert train["step_seconds"] > 0 and train["samples_per_second"] > 0
assert phases["forward and backward"]["least_seconds"] > 0
least = sum(phase.get("least_seconds", 0) for phase in phases.values())
assert abs(least - train["least_seconds"]) < 1e-9, train
PYTHON
