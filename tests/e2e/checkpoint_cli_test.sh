# Checkpoints on the command line, and the reader in docs/formats/checkpoint.md on real files.
source "$(dirname "$0")/lib.sh" "$@"
python3 -c 'import ctypes, numpy; ctypes.CDLL("libxxhash.so.0")' 2>/dev/null ||
  skip "needs python3 with numpy, and libxxhash"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
$renzan train small.yaml --run-dir run 2>/dev/null

# The code in the document, verbatim.
awk '/^## Reading a checkpoint/ {on = 1} on && /^```$/ {exit} code {print} on && /^```python$/ {code = 1}' \
  "$source_root/docs/formats/checkpoint.md" >reader.py
[ "$(wc -l <reader.py)" -gt 20 ] || fail "no reader in the document"

# A directory of checkpoints: the model as the base, and increments written in Python.
mkdir -p run/checkpoints
cp -r run/model run/checkpoints/step-00000011
cat >increment.py <<'PY'
import ctypes, hashlib, json, os, struct, sys
import numpy as np
from reader import read_directory

class Digest(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]

xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_128bits.restype = Digest
xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
NAMES = {"float32": "F32", "int32": "I32", "int64": "I64", "uint8": "U8"}

def write_file(directory, name, tensors):
    header, data, listed = {}, b"", []
    for key, a in sorted(tensors.items(), key=lambda item: -item[1].itemsize):
        a = np.ascontiguousarray(a)
        info = {"dtype": NAMES[str(a.dtype)], "shape": list(a.shape)}
        header[key] = dict(info, data_offsets=[len(data), len(data) + a.nbytes])
        listed.append(dict(key=key, **info, sha256=None))
        data += a.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    raw = struct.pack("<Q", len(text)) + text + data
    open(os.path.join(directory, name), "wb").write(raw)
    digest = xxhash.XXH3_128bits(raw, len(raw))
    return {"name": name, "bytes": len(raw), "xxh128": "%016x%016x" % (digest.high, digest.low),
            "tensors": listed}

base, step, int8 = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "int8"
manifest, sha256, tensors = read_directory(base)
random = np.random.default_rng(step)
directory = os.path.join(os.path.dirname(base), "step-%08d" % step)
os.mkdir(directory)
dense = {k: v + np.float32(0.5) for k, v in tensors.items() if not k.startswith("embedding.")}
files = [write_file(directory, "dense.safetensors", dense),
         write_file(directory, "progress.safetensors",
                    {"progress.auc": np.array([1, 2, 2**60], "i8")})]
for key in [k for k in tensors if k.startswith("embedding.") and k.endswith(".weight")]:
    table = key[:-len(".weight")]
    rows = np.flatnonzero(random.random(len(tensors[key])) < 0.3).astype("i4")
    part = {table + ".rows": rows}
    for name in [k for k in tensors if k.startswith(key + "/")]:
        part[name] = tensors[name][rows] + np.float32(1)
    values = (tensors[key][rows] + random.random((len(rows), 1))).astype("f4")
    if int8:
        low = values.min(1).astype("f4")
        scale = ((values.max(1).astype("f8") - low) / 255).astype("f4")
        part[key + ".scale"], part[key + ".offset"] = scale, low
        q = (values.astype("f8") - low[:, None]) / np.where(scale > 0, scale, 1)[:, None]
        part[key + ".q8"] = np.clip(np.rint(q), 0, 255).astype("u1")
    else:
        part[key] = values
    files.append(write_file(directory, "table." + table.split(".")[1] + ".safetensors", part))
manifest.update(kind="incremental", step=step, model_sha256=None, files=files, run={"writer": "näme"},
                base={"name": os.path.basename(base), "manifest_sha256": sha256},
                quantization="int8" if int8 else None)
text = json.dumps(manifest, separators=(",", ":"), ensure_ascii=False)
manifest["manifest_sha256"] = hashlib.sha256(text.encode()).hexdigest()
json.dump(manifest, open(os.path.join(directory, "manifest.json"), "w", encoding="utf-8"), indent=1)
PY
PYTHONIOENCODING=utf-8 python3 increment.py run/checkpoints/step-00000011 20 exact
PYTHONIOENCODING=utf-8 python3 increment.py run/checkpoints/step-00000011 30 int8

# The document's reader and ours read the same bits from all three.
for name in 11 20 30; do
  $renzan checkpoint export run/checkpoints/step-000000$name --output $name.safetensors >/dev/null 2>&1
  python3 - run/checkpoints/step-000000$name $name.safetensors <<'PY'
import sys
import numpy as np
from reader import read_checkpoint
ours = read_checkpoint(sys.argv[1])
progress = [key for key in ours if key.startswith("progress.")]
assert len(progress) == (0 if sys.argv[1].endswith("11") else 1), progress
for key in progress:
    assert ours.pop(key).tolist() == [1, 2, 2**60]
try:
    from safetensors.numpy import load_file
except ImportError:
    import json, struct
    def load_file(path):
        raw = open(path, "rb").read()
        data = 8 + struct.unpack("<Q", raw[:8])[0]
        header = json.loads(raw[8:data])
        header.pop("__metadata__")
        return {key: np.frombuffer(raw[data:][slice(*info["data_offsets"])], "<f4")
                .reshape(info["shape"]) for key, info in header.items()}
exported = load_file(sys.argv[2])
assert sorted(exported) == sorted(ours)
for key, values in exported.items():
    assert values.dtype == np.float32 and values.tobytes() == ours[key].tobytes(), key
PY
done

# Tables of 16 bits.
for type in fp16 bf16; do
  $renzan train small.yaml --run-dir $type --set numerics.embedding_precision=$type 2>/dev/null
  $renzan checkpoint export $type/model --output $type.safetensors >/dev/null
  python3 - $type <<'PY'
import json, struct, sys
import numpy as np
from reader import read_checkpoint
type = sys.argv[1]
ours = read_checkpoint(type + "/model")
raw = open(type + ".safetensors", "rb").read()
data = 8 + struct.unpack("<Q", raw[:8])[0]
tables = 0
for key, info in json.loads(raw[8:data]).items():
    if info.get("dtype") != {"fp16": "F16", "bf16": "BF16"}[type]:
        continue
    exported = np.frombuffer(raw[data:][slice(*info["data_offsets"])], "<u2")
    bits = ours[key].ravel().view("<u2")
    assert (exported == (bits if type == "fp16" else bits[1::2])).all(), key
    assert np.abs(ours[key].astype("f4")).max() > 0.001, key
    tables += 1
assert tables == sum(key.endswith(".weight") and key.startswith("embedding.") for key in ours)
PY
done

# list and verify: a run, a directory, one checkpoint.
expect_exit 0 "step-00000030    30" $renzan checkpoint list run
grep -q "^model .* full .* ok$" out.txt || fail "no model in: $(cat out.txt)"
grep -q "incremental  step-00000011  ok, int8: not bit-exact$" out.txt || fail "$(cat out.txt)"
expect_exit 0 "valid: run/checkpoints/step-00000030: incremental, step 30" $renzan checkpoint verify run
[ "$(grep -c ^valid: out.txt)" -eq 4 ] || fail "not four: $(cat out.txt)"
expect_exit 0 "model_sha256 $(sha256_of run)" $renzan checkpoint verify run/model
expect_exit 0 "step-00000020" $renzan checkpoint verify run/checkpoints/step-00000020/
$renzan checkpoint list run/checkpoints --json >list.json
$renzan checkpoint verify run/checkpoints --json >verify.json
python3 - <<'PY'
import json
listed = json.load(open("list.json"))
assert [c["step"] for c in listed] == [30, 20, 11], listed
assert [c["kind"] for c in listed] == ["incremental", "incremental", "full"]
assert [c["base"] for c in listed] == ["step-00000011"] * 2 + [None]
assert [c["quantization"] for c in listed] == ["int8", None, None]
assert all(c["problem"] is None and c["bytes"] > 0 for c in listed)
verified = json.load(open("verify.json"))
assert verified["valid"] and len(verified["checkpoints"]) == 3
PY
expect_exit 66 "no_such" $renzan checkpoint list no_such
mkdir empty
expect_exit 66 "is not a checkpoint, a run or a directory of checkpoints" $renzan checkpoint verify empty

# diff compares any two.
expect_exit 0 "same:" $renzan checkpoint diff run run/checkpoints/step-00000011
expect_exit 1 "step: 11 and 20" $renzan checkpoint diff run run/checkpoints/step-00000020
expect_exit 1 "int8: not bit-exact" $renzan checkpoint diff run run/checkpoints/step-00000030

# eval and predict: a checkpoint, and the newest one of a run that has no model yet.
$renzan eval run --data data --json >model.json
$renzan eval run/checkpoints/step-00000011 --data data --json >base.json
cmp model.json base.json || fail "a copy of the model gives other results"
$renzan eval run/checkpoints/step-00000030 --data data --json >newest.json
mv run/model away
$renzan eval run --data data --json --workers 2 >unfinished.json 2>log.txt
cmp newest.json unfinished.json || fail "not the newest checkpoint"
grep -q "using step-00000030" log.txt || fail "does not say which checkpoint: $(cat log.txt)"
mv away run/model

# Corruption is detected and named; a corrupt checkpoint is not used.
expect_exit 65 "is corrupt" bash -c "printf X | dd of=run/checkpoints/step-00000030/dense.safetensors \
  bs=1 seek=3000 conv=notrunc 2>/dev/null; exec $renzan checkpoint verify run"
grep -q "^CORRUPT: run/checkpoints/step-00000030" out.txt || fail "$(cat out.txt)"
[ "$(grep -c ^valid: out.txt)" -eq 3 ] || fail "not three: $(cat out.txt)"
truncate -s -1 run/checkpoints/step-00000030/dense.safetensors
expect_exit 0 "CORRUPT" $renzan checkpoint list run
expect_exit 65 "manifest says" $renzan checkpoint export run/checkpoints/step-00000030 --output x.safetensors
[ ! -e x.safetensors ] || fail "a corrupt checkpoint was exported"
rm -r run/model
expect_exit 0 "using step-00000020" $renzan eval run --data data

# An increment without its base is an error that names the base.
mv run/checkpoints/step-00000011 run/checkpoints/away
expect_exit 65 "checkpoints/step-00000011" $renzan checkpoint verify run/checkpoints/step-00000020
expect_exit 65 "neither a model nor a valid checkpoint" $renzan eval run --data data
