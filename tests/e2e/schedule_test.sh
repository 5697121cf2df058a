# Learning rate schedules that end with the run, or do not fit it: what is computed, and what is
# said before the run starts.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data  # 11 steps an epoch
train() { $renzan train small.yaml "$@"; }
to_the_end=(--set optimizer.schedule.decay_steps=-1)

# A schedule that ends with the run equals one of as many steps, and keeps its bits if the run is
# stopped.
expect_exit 0 "model sha256" train --run-dir whole --set training.epochs=20 "${to_the_end[@]}"
! grep -q "optimizer.schedule" out.txt || fail "warned of a schedule that fits: $(cat out.txt)"
expected=$(sha256_of whole)
train --run-dir given --set training.epochs=20 --set optimizer.schedule.decay_steps=220 2>/dev/null
[ "$(sha256_of given)" = "$expected" ] || fail "decay_steps: -1 is not that of 220 steps"
train --run-dir constant --set training.epochs=20 2>/dev/null
[ "$(sha256_of constant)" != "$expected" ] || fail "the schedule has no effect"
train_until_checkpoints 2 part --set training.epochs=20 --set checkpoint.every_steps=50 \
  "${to_the_end[@]}"
rm -r part/model
expect_exit 0 "resuming from step-" train --run-dir part --workers 2 --set training.epochs=20 \
  "${to_the_end[@]}"
[ "$(sha256_of part)" = "$expected" ] || fail "other bits after resuming"

# The rate of every step follows the length, so a run of another length is another run.
expect_exit 78 "training.epochs is 20.0 there and 30.0 here (the learning rates decay until the end" \
  train --run-dir whole --set training.epochs=30 "${to_the_end[@]}"
expect_exit 78 "training.epochs is 20.0 there and 30.0 here (the learning rates decay until the end" \
  $renzan train --resume --run-dir whole --set training.epochs=30
expect_exit 0 "identical" $renzan train --rerun whole

# A run whose schedule has a given end may continue; it says at which rates, and that they are 0.
short=(--set optimizer.schedule.decay_steps=11)
expect_exit 0 "model sha256" train --run-dir longer "${short[@]}"
! grep -q "optimizer.schedule" out.txt || fail "warned of a schedule that fits: $(cat out.txt)"
before=$(sha256_of longer)
expect_exit 0 "goes on from step 11 to 22 with learning rates of 0 (dense) and 0 (tables)" \
  train --run-dir longer "${short[@]}" --set training.epochs=2
grep -q "ends at step 11 .* the last 11 steps do not change the model" out.txt ||
  fail "no warning: $(cat out.txt)"
[ "$(grep -n 'do not change the model' out.txt | cut -d: -f1)" -lt \
  "$(grep -n 'step 12\|step 22' out.txt | head -1 | cut -d: -f1)" ] ||
  fail "warned after training: $(cat out.txt)"

# A floor, and a warm-up beyond the end.
expect_exit 0 "model sha256" train --run-dir floor "${short[@]}" --set training.epochs=2 \
  --set optimizer.schedule.decay_floor=0.1
! grep -q "optimizer.schedule" out.txt || fail "warned of a schedule with a floor: $(cat out.txt)"
expect_exit 0 "warmup_steps is 44, but the run has 11 steps: the learning rates only reach 25 %" \
  train --run-dir warm --set optimizer.schedule.warmup_steps=44
