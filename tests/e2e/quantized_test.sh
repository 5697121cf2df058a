# checkpoint.quantize: increments with 8-bit rows are smaller and valid. Runs can resume from them,
# but not bit-exactly, which is a warning.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
long=(--set training.epochs=20 --set checkpoint.every_steps=10 --set model.embedding_dim=64)
warning="will not be bit-identical to an uninterrupted one"

# bytes_of RUN: size of the tables in its newest checkpoint, an increment.
bytes_of() {
  python3 - "$1/checkpoints/$(checkpoints_in "$1/checkpoints" | head -1)/manifest.json" <<'PY'
import json, sys
manifest = json.load(open(sys.argv[1]))
assert manifest["kind"] == "incremental", manifest["kind"]
print(sum(f["bytes"] for f in manifest["files"] if f["name"].startswith("table.")))
PY
}

train_until_checkpoints 5 exact "${long[@]}"
! grep -q "$warning" log.txt || fail "a warning without quantization"
train_until_checkpoints 5 run "${long[@]}" --set checkpoint.quantize=int8
expect_log "$warning"
# A run that is not resumed does not read its checkpoints.
[ "$(sha256_of run)" = "$(sha256_of exact)" ] || fail "writing checkpoints changed the model"
expect_exit 0 "int8: not bit-exact" $renzan checkpoint verify run
[ $((2 * $(bytes_of run))) -lt "$(bytes_of exact)" ] ||
  fail "$(bytes_of run) bytes with int8, $(bytes_of exact) without"

rm -r run/model
newest=$(checkpoints_in run/checkpoints | head -1)
expect_exit 0 "resuming from $newest" $renzan train small.yaml --run-dir run "${long[@]}" \
  --set checkpoint.quantize=int8 --workers 2 --threads 1
grep -q "$warning" out.txt || fail "no warning: $(cat out.txt)"
expect_exit 1 "" $renzan checkpoint diff run exact
