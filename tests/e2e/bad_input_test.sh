# Bad input: one clear error and the right exit code for each.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
train() { $renzan train small.yaml --run-dir run "$@"; }

# Configuration: file, line, column, nearest name.
sed 's/batch_size/batch_sise/' small.yaml >typo.yaml
expect_exit 78 "typo.yaml:4:12" $renzan train typo.yaml
expect_exit 78 "did you mean 'batch_size'" $renzan train typo.yaml
sed 's/seed: 3/seed: three/' small.yaml >type.yaml
expect_exit 78 "type.yaml:1:7" $renzan train type.yaml
expect_exit 78 "did you mean 'isa'" train --set numerics.iza=avx2
expect_exit 66 "no_such.yaml" $renzan train no_such.yaml
expect_exit 66 "small.yaml/rows.tsv" $renzan data import small.yaml/rows.tsv --output imported
expect_exit 64 "renzan train --help" $renzan train
expect_exit 64 "" $renzan train small.yaml --no-such-flag

# Invalid sizes.
expect_exit 78 "--set training.batch_size=100: training has batch_size 100, which must be a multiple" \
  train --set training.batch_size=100
expect_exit 78 "--workers 9: workers = 9 is more than the 8 virtual workers" train --workers 9
expect_exit 78 "rows end at 5000" train --set 'data.eval.rows=[0, 5000]'
expect_exit 78 "batch" train --set training.batch_size=4096
expect_exit 78 "local" train --workers 2 --backend local

# Files.
expect_exit 66 "nowhere" train --set data.train.path=nowhere
[ ! -e run ] || fail "a run directory was created"
echo garbage >trash
expect_exit 66 "" $renzan train small.yaml --run-dir run --set data.train.path=trash
if [ "$(id -u)" -ne 0 ]; then
  chmod 000 data/dataset.yaml
  expect_exit 66 "Permission denied" train
  chmod 644 data/dataset.yaml
fi
mkdir run && touch run/manifest.json
expect_exit 65 "run/manifest.json is not the manifest of a run" train
rm -r run

# A run directory without checkpoints can be used again, but only by the same run.
train 2>/dev/null
rm -r run/model
expect_exit 73 "run holds another run: seed is 3 there and 4 here" train --set seed=4
expect_exit 0 "trained 11 steps" train
rm -r run

# Invalid data: an id outside its table, NaN, a truncated file, a changed file.
corrupt() { # FILE-PATTERN PYTHON: makes a copy of the data with one array changed
  rm -rf bad run
  cp -r data bad
  python3 - "$1" "$2" <<'PY'
import glob, sys
import numpy as np
path = glob.glob("bad/shard-*/" + sys.argv[1])[0]
a = np.load(path, mmap_mode="r+")
exec(sys.argv[2])
a.flush()
PY
}
# A block's checksum detects any change. Without checksums, invalid values are still detected.
corrupt ids.npy 'a[7, 2] = 1'
expect_exit 65 "ids.npy: bytes 0 to 65535 are corrupt" train --set data.train.path=bad
unverified() { train --set data.train.path=bad --set data.verify_blocks=false; }
corrupt ids.npy 'a[7, 2] = 99999999'
expect_exit 65 "99999999" unverified
grep -q "row 7" out.txt || fail "the row is not named: $(cat out.txt)"
grep -q "C3" out.txt || fail "the feature is not named: $(cat out.txt)"
corrupt ids.npy 'a[7, 2] = -1'
expect_exit 65 "-1" unverified
corrupt dense.npy 'a[11, 0] = np.nan'
expect_exit 65 "row 11" unverified
corrupt label.npy 'a[3] = 2'
expect_exit 65 "row 3" unverified
corrupt label.npy 'a[3] = 1 - a[3]'
expect_exit 65 "label.npy" $renzan data verify bad
expect_exit 65 "label.npy" train --set data.train.path=bad --set data.verify=true
corrupt label.npy 'pass'
truncate -s -4 bad/shard-00000/label.npy
expect_exit 65 "label.npy" train --set data.train.path=bad
python3 - <<'PY'
import numpy as np
a = np.load("bad/shard-00000/ids.npy")
np.save("bad/shard-00000/ids.npy", a.astype(np.float64))
PY
cp data/shard-00000/label.npy bad/shard-00000/
expect_exit 65 "ids.npy" train --set data.train.path=bad

# A corrupt model, and a missing one.
rm -rf run
train 2>/dev/null
printf 'X' | dd of=run/model/dense.safetensors bs=1 seek=4000 conv=notrunc 2>/dev/null
expect_exit 65 "dense.safetensors" $renzan eval run --data data
expect_exit 66 "no_model" $renzan eval no_model --data data

# A port in use.
python3 - >port.txt <<'PY' &
import socket, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print(s.getsockname()[1], flush=True)
time.sleep(30)
PY
holder=$!
for _ in $(seq 50); do [ -s port.txt ] && break; sleep 0.1; done
expect_exit 69 "$(cat port.txt)" env RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \
  MASTER_PORT="$(cat port.txt)" $renzan train small.yaml --run-dir run2
kill $holder
expect_exit 64 "WORLD_SIZE" env RANK=0 WORLD_SIZE=zwei $renzan train small.yaml --run-dir run2

# Invalid ranges of rows, and workers with different configurations.
rm -rf run
train 2>/dev/null
$renzan data synth --rows 100 --output clicks100.tsv >/dev/null
expect_exit 64 "must be hash:N" $renzan data import --vocabulary C1= --output none clicks100.tsv
expect_exit 64 "0 <= BEGIN < END" $renzan eval run --data data --rows 100 50
expect_exit 64 "rows end at 9000" $renzan eval run --data data --rows 0 9000
pair() { # COMMAND...: as rank 1 of 2, while rank 0 trains small.yaml
  local port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
    $renzan train small.yaml --run-dir run3 >other.txt 2>&1 &
  other=$!
  env RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" "$@"
}
expect_exit 78 "different configuration than worker 0" pair $renzan train small.yaml \
  --run-dir run3 --set optimizer.dense.learning_rate=0.07
wait $other && fail "rank 0 did not fail"
expect_exit 78 "different instruction set" pair $renzan train small.yaml --run-dir run3 \
  --set numerics.isa=sse4
wait $other && fail "rank 0 did not fail"
[ ! -e run3 ] || fail "a run directory was created"

# Columns in another order are rejected; unusual column names work.
cat >schema.yaml <<'YAML'
delimiter: ","
header: true
columns:
  y: {role: label}
  a/b: {role: categorical}
  "ü c": {role: categorical}
YAML
python3 - <<'PY'
import random
random.seed(1)
rows = [(random.randrange(2), random.randrange(9), random.randrange(99)) for _ in range(4000)]
for path, order in (("odd.csv", (0, 1, 2)), ("swapped.csv", (0, 2, 1))):
    with open(path, "w") as file:
        names = ("y", "a/b", "\u00fc c")
        print(",".join(names[i] for i in order), file=file)
        for row in rows:
            print(",".join(str(row[i]) for i in order), file=file)
PY
$renzan data import --format csv --schema schema.yaml --output odd odd.csv >/dev/null
rm -rf run
train --set data.train.path=odd --set data.eval.path=odd 2>/dev/null
$renzan checkpoint verify run >/dev/null
sed -i 's|^  a/b:|  TMP:|; s|^  "ü c":|  a/b:|; s|^  TMP:|  "ü c":|' schema.yaml
$renzan data import --format csv --schema schema.yaml --output swapped swapped.csv >/dev/null
expect_exit 78 "the categorical feature 'ü c' is where the training data has 'a/b'" $renzan eval run --data swapped

# A model that cannot see the only feature there is, and one that sees features in pairs only.
cut -d, -f1,2 odd.csv >one.csv
cat >one.schema.yaml <<'YAML'
columns: {y: {role: label}, a/b: {role: categorical}}
YAML
$renzan data import --format csv --schema one.schema.yaml --output one one.csv >/dev/null
one=(--set data.train.path=one --set data.eval.path=one)
expect_exit 78 "every prediction would be the same; use model.type: dlrm_dcnv2" \
  $renzan train small.yaml --run-dir one_run "${one[@]}"
[ ! -e one_run ] || fail "a run directory was created"
expect_exit 0 "model sha256" $renzan train small.yaml --run-dir one_run "${one[@]}" \
  --set model.type=dlrm_dcnv2
expect_exit 0 "sees its 2 categorical features only as products of pairs" \
  $renzan train small.yaml --run-dir pair_run --set data.train.path=odd --set data.eval.path=odd

# Numbers on the command line are decimal, as in YAML 1.2; C reads 010 as 8.
$renzan data synth --rows 010 --seed 0010 --output ten.tsv >/dev/null
[ "$(wc -l <ten.tsv)" -eq 10 ] || fail "--rows 010 made $(wc -l <ten.tsv) rows"
$renzan data synth --rows +10 --seed 10 --output same.tsv >/dev/null
cmp ten.tsv same.tsv || fail "--seed 0010 is not 10"
expect_exit 64 "'0x10' is not a whole number" $renzan data synth --rows 0x10 --output hex.tsv
expect_exit 64 "'-1' is not a whole number of at least 0" \
  $renzan data synth --seed -1 --output negative.tsv
expect_exit 64 "is too large" $renzan data synth --seed 18446744073709551616 --output large.tsv
expect_exit 64 "--cycle" $renzan cluster replay ten.tsv --cycle 0x1
