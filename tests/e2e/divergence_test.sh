# A learning rate that is far too high: NaN ends the run with advice, and an AUC stuck at 0.5 gives
# a warning.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 120000 --output data >/dev/null
small_config data
expect_exit 70 "learning_rate" $renzan train small.yaml --run-dir nan \
  --set optimizer.dense.learning_rate=1e6 --set optimizer.sparse.learning_rate=1e6
grep -q '"failed"' nan/status.json || fail "status.json does not say failed"

# Random labels have the same symptom. (The checksums no longer match.)
python3 - <<'PY'
import glob
import numpy as np
label = np.load(glob.glob("data/shard-*/label.npy")[0], mmap_mode="r+")
label[:] = np.random.default_rng(1).random(len(label)) < 0.25
PY
expect_exit 0 "the model is not learning" $renzan train small.yaml --run-dir stuck \
  --set 'data.train.rows=[0, 119000]' --set data.verify_blocks=false

# A dense feature that nothing scales: import warns about it, and the error of the run that diverges
# names it. Standardized, it trains.
python3 - <<'PY'
import random
random.seed(1)
with open("times.csv", "w") as file:
    print("y,x,ts,c", file=file)
    for row in range(4000):
        x = random.random()
        print(f"{int(random.random() < x)},{x:.3f},{1700000000 + row},{random.randrange(20)}", file=file)
PY
cat >times.yaml <<'YAML'
columns: {y: {role: label}, x: {role: dense}, ts: {role: dense}, c: {role: categorical}}
YAML
large="'ts' (about 1.7e+09: transform: standardize)"
expect_exit 0 "$large" \
  $renzan data import times.csv --format csv --schema times.yaml --output times
small_config times
expect_exit 70 "the values of dense feature $large" $renzan train small.yaml --run-dir times_run
sed 's/ts: {role: dense}/ts: {role: dense, transform: standardize}/' times.yaml >scaled.yaml
$renzan data import times.csv --format csv --schema scaled.yaml --output scaled >import.txt 2>&1
! grep -q warning import.txt || { cat import.txt; fail "a warning about scaled features"; }
small_config scaled
$renzan train small.yaml --run-dir scaled_run 2>/dev/null
# Its own constants differ from those of the model, and --vocabulary-from takes the model's.
head -2000 times.csv >test.csv
$renzan data import test.csv --format csv --schema scaled.yaml --output test >/dev/null
expect_exit 78 "the transform of 'ts' is standardize:" $renzan eval scaled_run --data test
grep -qF "import it with the same 'transform', 'clip' and 'fill' in the schema (for format criteo: --dense), and --vocabulary-from" \
  out.txt || fail "$(cat out.txt)"
$renzan data import test.csv --format csv --schema scaled.yaml --vocabulary-from scaled \
  --output same >/dev/null
$renzan eval scaled_run --data same >/dev/null
