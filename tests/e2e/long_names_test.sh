# Columns whose names are longer than file names may be: trained, checkpointed, resumed, saved,
# exported and predicted with.
source "$(dirname "$0")/lib.sh" "$@"
python3 - <<'PY'
chinese = "特" * 27
latin = "long_column_name_" * 30  # 510 letters
bags = latin + "/of several values"
features = {chinese: "categorical", latin: "categorical", bags: "multi_hot", "é" * 200: "dense"}
with open("schema.yaml", "w", encoding="utf-8") as schema:
    schema.write("columns:\n  label: {role: label}\n")
    schema.writelines(f'  "{name}": {{role: {role}}}\n' for name, role in features.items())
with open("in.csv", "w", encoding="utf-8") as rows:
    rows.write(",".join(["label", *features]) + "\n")
    rows.writelines(
        f"{row % 3 % 2},c{row % 90},l{row % 70},b{row % 50}|b{row % 7},{row % 10 / 10}\n"
        for row in range(4000))
PY
$renzan data import in.csv --format csv --schema schema.yaml --vocabulary threshold:1 \
  --output data >/dev/null
$renzan data verify data >/dev/null
small_config data
options=(--set training.epochs=3 --set comm.backward=int8 --set comm.error_feedback_rows=16
  --set checkpoint.every_steps=4 --set checkpoint.quantize=int8 --set numerics.row_blocks=4
  --set numerics.column_blocks=2)
$renzan train small.yaml --run-dir run "${options[@]}" >log.txt 2>&1 || fail "$(cat log.txt)"
! grep -q "could not be written" log.txt || fail "$(cat log.txt)"
ls run/model | awk 'length($0) > 255 - 17 { exit 1 }' || fail "no room for a store's prefix"
$renzan checkpoint verify run >/dev/null
$renzan checkpoint export run/model --output model.safetensors >/dev/null
python3 - <<'PY' || fail "the export does not have the columns' names"
import json, struct
with open("model.safetensors", "rb") as file:
    keys = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
escaped = "".join(f"%{byte:02X}" for byte in ("特" * 27).encode())
assert f"embedding.{escaped}.weight" in keys, list(keys)
PY
$renzan eval run --data data --rows 3000 4000 >/dev/null
$renzan predict run --data data --output scores.npy >/dev/null

# Resumed from a full checkpoint and an increment on top of it.
rm -r run/model
expect_exit 0 "resuming from" $renzan train small.yaml --run-dir run "${options[@]}" --workers 2 \
  --threads 1
$renzan checkpoint verify run >/dev/null
