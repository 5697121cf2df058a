# A full disk: a clear error, exit 74, and nothing half-written.
source "$(dirname "$0")/lib.sh" "$@"
[ "$(id -u)" -eq 0 ] || skip "needs root to mount a small file system"
mkdir small
mount -t tmpfs -o size=1m tmpfs small 2>/dev/null || skip "cannot mount a tmpfs here"
trap 'umount "$work/small"; rm -rf "$work"' EXIT
$renzan data synth --format dataset --seed 7 --rows 20000 --output data >/dev/null
$renzan data synth --format criteo --seed 7 --rows 20000 --output clicks.tsv >/dev/null
small_config data
expect_exit 74 "No space left" $renzan data import --format criteo --output small/data clicks.tsv
[ -z "$(ls -A small)" ] || fail "import left behind $(ls -A small)"
expect_exit 74 "No space left" $renzan train small.yaml --run-dir small/run \
  --set model.embedding_dim=32
grep -q "a full checkpoint takes .*, the model .*, but only .* are free in small/run" out.txt || fail "not said before"
[ ! -e small/run/model ] || fail "a model was written"
[ ! -e small/run/.model.partial ] || fail "a partial model was left behind"
expect_exit 74 "No space left" $renzan data synth --format dataset --seed 7 --rows 20000 \
  --output small/data
