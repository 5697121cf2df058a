# Damage to any file of the newest checkpoint is found on resuming: the run says so, resumes from the
# one before, and comes to the same bits. Nothing corrupt is ever deleted.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --features 3 --output data >/dev/null
small_config data
# Where the disk is slow, a short run gets few checkpoints: then it is tried again.
for _ in $(seq 10); do
  rm -rf whole
  $renzan train small.yaml --run-dir whole --set training.epochs=20 \
    --set checkpoint.every_steps=10 --set checkpoint.keep=100 2>/dev/null
  names=($(checkpoints_in whole/checkpoints))
  [ ${#names[@]} -lt 3 ] || break
done
$renzan train small.yaml --run-dir undisturbed --set training.epochs=25 2>/dev/null
expected=$(sha256_of undisturbed)
rm -r whole/model
[ ${#names[@]} -ge 3 ] || fail "only ${names[*]}"
newest=${names[0]} older=${names[1]}
grep -q '"kind": "incremental"' whole/checkpoints/$newest/manifest.json || fail "no increment"
base=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["base"]["name"])' \
  whole/checkpoints/$newest/manifest.json)

# damage HOW FILE
damage() {
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

# content_of DIR: a checksum of everything in it but the lock, which says who had it last.
content_of() { (cd "$1" && find . -type f ! -name .lock -print0 | sort -z | xargs -0 sha256sum | sha256sum); }

# expect_kept CONTENT NAME: under its name or moved aside.
expect_kept() {
  local dir
  for dir in run/checkpoints/$2*; do
    if [ "$(content_of "$dir")" = "$1" ]; then return; fi
  done
  fail "the corrupt $2 was deleted or changed: $(ls -A run/checkpoints)"
}

begin() { rm -rf run && cp -r whole run; }
# Longer, and with checkpoints at other steps than the newest's, so that many come and go.
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
    damage $how run/checkpoints/$newest/$file
    content=$(content_of run/checkpoints/$newest)
    expect_exit 0 "$newest is passed over" resume
    grep -q "resuming from $older" out.txt || { cat out.txt; fail "$how $file: not from $older"; }
    [ "$(sha256_of run)" = "$expected" ] || fail "$how $file: other bits"
    expect_kept "$content" $newest
  done
done

# Several workers find it together, whoever reads the file.
for file in dense.safetensors table.C3.safetensors; do
  begin
  damage flip run/checkpoints/$newest/$file
  expect_exit 0 "resuming from $older" resume --workers 2 --threads 1 --backend gloo
  [ "$(sha256_of run)" = "$expected" ] || fail "two workers: other bits"
done

# A base takes its increments with it; nothing is left here, so nothing is touched.
begin
damage flip run/checkpoints/$base/dense.safetensors
damage flip run/checkpoints/$base/table.C3.safetensors
content=$(content_of run/checkpoints)
for workers in 1 2; do
  expect_exit 65 "no checkpoint in run/checkpoints is valid" resume --workers $workers --threads 1
  grep -q "restore one, or start anew with another --run-dir" out.txt || fail "$(cat out.txt)"
  [ "$(content_of run/checkpoints)" = "$content" ] || fail "something was touched"
  [ ! -e run/model ] || fail "a model was made of nothing"
done
begin
for name in "${names[@]}"; do damage truncate run/checkpoints/$name/manifest.json; done
content=$(content_of run/checkpoints)
expect_exit 65 "no checkpoint in run/checkpoints is valid" resume
[ "$(content_of run/checkpoints)" = "$content" ] || fail "something was touched"
