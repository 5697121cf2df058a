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
