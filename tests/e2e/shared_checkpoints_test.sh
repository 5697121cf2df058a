# A checkpoint or run directory belongs to one run: a second run is refused without disturbing the
# first.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
long=(--set training.epochs=50)
$renzan train small.yaml --run-dir reference "${long[@]}" 2>/dev/null

# The first run is paused while the others try.
train_in_background "${long[@]}" --workers 2 --threads 1 --backend gloo \
  --set checkpoint.dir=shared --set checkpoint.every_steps=10
kill -STOP $(workers_of $launcher)
before=$(find run shared | sort)
expect_exit 73 "run directory run" $renzan train small.yaml --run-dir other "${long[@]}" \
  --set checkpoint.dir=shared
grep -q "another run is writing to shared: process [0-9]* on" out.txt ||
  fail "does not name the other: $(cat out.txt)"
expect_exit 73 "another run" env RENZAN_CHECKPOINT_DIR=shared $renzan train small.yaml \
  --run-dir other2 "${long[@]}"
expect_exit 73 "another run" $renzan train small.yaml --run-dir run "${long[@]}" \
  --workers 2 --set checkpoint.dir=shared
[ "$(find run shared | sort)" = "$before" ] || fail "the refused runs changed something"
kill -CONT $(workers_of $launcher)
expect_end 0
[ "$(sha256_of run)" = "$(sha256_of reference)" ] || fail "the first run was disturbed"

# The lock is released when its owner exits.
expect_exit 0 "is already trained" $renzan train small.yaml --run-dir run "${long[@]}" \
  --set checkpoint.dir=shared
