# Corruption of any file of the newest checkpoint is detected on resume: the run logs it, resumes
# from the previous checkpoint and ends with the same bits. Nothing corrupt is ever deleted.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --features 3 --output data >/dev/null
small_config data
train_until_checkpoints 5 whole --set training.epochs=20 --set checkpoint.every_steps=10 \
  --set checkpoint.keep=100
names=($(checkpoints_in whole/checkpoints))
$renzan train small.yaml --run-dir reference --set training.epochs=25 2>/dev/null
expected=$(sha256_of reference)
rm -r whole/model
newest=${names[0]} older=${names[1]}
grep -q '"kind": "incremental"' whole/checkpoints/$newest/manifest.json || fail "no increment"
base=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["base"]["name"])' \
  whole/checkpoints/$newest/manifest.json)

# corrupt HOW FILE
corrupt() {
  python3 - "$@" <<'PY'
import os, sys
how, path = sys.argv[1:]
size = os.path.getsize(path)
if how == "truncate":
    os.truncate(path, size // 2)
elif how == "remove":
    os.remove(path)
else:
    with open(path, "r+b") as file:
        file.seek(size * 2 // 3)
        byte = file.read(1)[0]
        file.seek(size * 2 // 3)
        file.write(bytes([byte ^ 4]))
PY
}

# content_of DIR: a checksum of everything in it but the lock, which names its last owner.
content_of() { (cd "$1" && find . -type f ! -name .lock -print0 | sort -z | xargs -0 sha256sum | sha256sum); }

# expect_kept CONTENT NAME: it still exists, under its name or moved aside.
expect_kept() {
  local dir
  for dir in run/checkpoints/$2*; do
    if [ "$(content_of "$dir")" = "$1" ]; then return; fi
  done
  fail "the corrupt $2 was deleted or changed: $(ls -A run/checkpoints)"
}

begin() { rm -rf run && cp -r whole run; }
# Trains longer and writes checkpoints at other steps than the newest, so that many are written and
# removed.
other_steps=$((10#${newest#step-} % 7 == 0 ? 8 : 7))
resume() {
  $renzan train small.yaml --run-dir run --set training.epochs=25 --set checkpoint.keep=1 \
    --set checkpoint.every_steps=$other_steps "$@"
}

begin
files=$(ls run/checkpoints/$newest)
[ "$(wc -w <<<"$files")" -eq 6 ] || fail "not six files: $files"
for file in $files; do
  for how in truncate flip remove; do
    begin
    corrupt $how run/checkpoints/$newest/$file
    content=$(content_of run/checkpoints/$newest)
    expect_exit 0 "skipping run/checkpoints/$newest" resume
    grep -q "resuming from $older" out.txt || { cat out.txt; fail "$how $file: not from $older"; }
    [ "$(sha256_of run)" = "$expected" ] || fail "$how $file: different bits"
    expect_kept "$content" $newest
  done
done

# What cannot be read may be intact, so it is neither skipped nor moved. (A link to itself cannot be
# read even by root.)
unreadable() { rm "$1" && ln -s "$(basename "$1")" "$1"; }
begin
unreadable run/checkpoints/$newest/manifest.json
ls -l run/checkpoints >before.txt
expect_exit 66 "it may be valid" resume
expect_exit 66 "CANNOT BE READ: run/checkpoints/$newest" $renzan checkpoint verify run
expect_exit 0 "CANNOT BE READ" $renzan checkpoint list run
expect_exit 66 "name an older one to use that" $renzan eval run --data data
ls -l run/checkpoints >after.txt
diff before.txt after.txt || fail "something was moved"
begin
cp -r reference/model run/model
unreadable run/model/manifest.json
expect_exit 66 "the model may be valid" resume
[ -d run/model ] && [ ! -e run/model.corrupt ] || fail "the model was moved: $(ls run)"

# A damaged model: a checkpoint takes its place. Without any checkpoint, nothing starts over by
# itself.
begin
cp -r reference/model run/model
corrupt truncate run/model/dense.safetensors
expect_exit 0 "resuming from $newest" resume
[ "$(sha256_of run)" = "$expected" ] || fail "a damaged model: different bits"
for how in truncate remove; do
  rm -rf run && cp -r reference run
  corrupt $how run/model/dense.safetensors
  content=$(content_of run/model)
  expect_exit 65 "there is no checkpoint to go on from: restore it" resume
  [ "$(content_of run/model)" = "$content" ] || fail "a damaged model was changed"
done

# Several workers skip it together, no matter which of them reads the file.
for file in dense.safetensors table.C3.safetensors; do
  begin
  corrupt flip run/checkpoints/$newest/$file
  expect_exit 0 "resuming from $older" resume --workers 2 --threads 1 --backend gloo
  [ "$(sha256_of run)" = "$expected" ] || fail "two workers: different bits"
done

# Without its base, no increment is valid. If no checkpoint is valid, none is moved.
begin
corrupt flip run/checkpoints/$base/dense.safetensors
corrupt flip run/checkpoints/$base/table.C3.safetensors
content=$(content_of run/checkpoints)
for workers in 1 2; do
  expect_exit 65 "no checkpoint in run/checkpoints is valid" resume --workers $workers --threads 1
  grep -q "restore one, or start a new run with another --run-dir" out.txt || fail "$(cat out.txt)"
  [ "$(content_of run/checkpoints)" = "$content" ] || fail "a checkpoint was changed"
  [ ! -e run/model ] || fail "a model was written"
done
begin
for name in "${names[@]}"; do corrupt truncate run/checkpoints/$name/manifest.json; done
content=$(content_of run/checkpoints)
expect_exit 65 "no checkpoint in run/checkpoints is valid" resume
[ "$(content_of run/checkpoints)" = "$content" ] || fail "a checkpoint was changed"
