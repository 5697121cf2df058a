# Scores join the input: keys are written as the input has them, whether they are features or not,
# and rows have their numbers in the input, though an import skipped some.
source "$(dirname "$0")/lib.sh" "$@"
python3 - <<'PY'
import csv, random
random.seed(5)
for name, first in ("train.csv", 0), ("test.csv", 5000):
    with open(name, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["request", "click", "age", "user"])
        for row in range(first, first + 4100):
            request = f'r-{row}' if row % 50 else f' "{row}", ü\nsecond line '
            click = "oops" if row % 100 == 17 else int(random.random() < 0.3)
            rows.writerow([request, click, row % 80, f"u{row % 9 if row % 3 else row}"])
PY
cat >schema.yaml <<'YAML'
columns:
  request: {role: key}
  click: {role: label}
  age: {role: dense}
  user: {role: categorical, key: true}
YAML
import_with() { $renzan data import --format csv --on-bad-row skip --schema "$@"; }
import_with schema.yaml --vocabulary threshold:2 --output train train.csv >/dev/null 2>&1
import_with schema.yaml --vocabulary-from train --shard-rows 700 --output test test.csv >said.txt 2>&1
! grep -qF -- "--grow" said.txt || { cat said.txt; fail "advice to grow a test set"; }
import_with schema.yaml --vocabulary-from train --grow --output grown test.csv >said.txt 2>&1
! grep -qF -- "--grow" said.txt || { cat said.txt; fail "advice to grow what grows"; }
# Who trains on it learns nothing of its new values.
small_config test
expect_exit 0 "% of the lookups of 'user' in its first 1024 rows are of values that the data of its --vocabulary-from lacks" \
  $renzan train small.yaml --run-dir unknown
small_config grown
$renzan train small.yaml --run-dir known >said.txt 2>&1
! grep -qF -- "--grow" said.txt || { cat said.txt; fail "advice to grow what has grown"; }
expect_exit 0 "keys, for predictions: request, user" $renzan data inspect test
small_config train
$renzan train small.yaml --run-dir run 2>/dev/null
# The same model without keys, from the same samples.
sed -e 's/request: {role: key}/request: {role: skip}/' -e 's/, key: true//' schema.yaml >plain.yaml
import_with plain.yaml --vocabulary threshold:2 --output plain train.csv >/dev/null 2>&1
small_config plain
$renzan train small.yaml --run-dir run.plain 2>/dev/null
[ "$(sha256_of run)" = "$(sha256_of run.plain)" ] || fail "keys change the model"

predict() { $renzan predict run --data test --with request,user,click,input_row "$@"; }
predict --output scores.csv 2>said.txt
grep -qF "skipped 41 bad rows (test/skipped_rows.csv), which have no score" said.txt ||
  { cat said.txt; fail "skipped rows are not counted"; }
predict --output scores.parquet 2>/dev/null
predict --output scores.npy 2>/dev/null
predict --output two.npy --workers 2 --backend gloo 2>/dev/null
predict --output some.npy --rows 1000 2000 2>/dev/null
cmp scores.npy two.npy || fail "another array with two workers"
predict --output two.csv --workers 2 --backend gloo 2>/dev/null
predict --output some.csv --rows 1000 2000 2>/dev/null
cmp scores.csv two.csv || fail "another file with two workers"
python3 - "$here" <<'PY' || fail "scores do not join the input"
import csv, sys
sys.path.insert(0, sys.argv[1])
import read_parquet
inputs = list(csv.DictReader(open("test.csv", newline="")))
scores = list(csv.DictReader(open("scores.csv", newline="")))
assert list(scores[0]) == ["request", "user", "click", "input_row", "score"]
assert len(scores) == 4059
for score in scores:
    row = inputs[int(score["input_row"])]
    assert all(score[name] == row[name] for name in ("request", "user", "click")), (score, row)
assert [int(score["input_row"]) for score in scores] == \
    [row for row in range(4100) if inputs[row]["click"] != "oops"]
assert list(csv.DictReader(open("some.csv", newline=""))) == scores[1000:2000]
columns = read_parquet.read("scores.parquet")
assert all(type(number) is int for number in columns["input_row"])
for name in "request", "user", "input_row":
    assert [str(value) for value in columns[name]] == [score[name] for score in scores], name
PY
python3 - <<'PY' || fail "a structured array has other values"
import csv
import numpy as np
scores = list(csv.DictReader(open("scores.csv", newline="")))
array = np.load("scores.npy")
longest = max(len(score["request"]) for score in scores)
assert array.dtype.descr == [("request", f"<U{longest}"), ("user", "<U5"), ("click", "<f4"),
                             ("input_row", "<i8"), ("score", "<f4")], array.dtype
for name in "request", "user", "input_row":
    assert [str(value) for value in array[name]] == [score[name] for score in scores], name
assert (array["score"] == np.array([score["score"] for score in scores], "f4")).all()
assert (array["click"] == np.array([score["click"] for score in scores], "f4")).all()
some = np.load("some.npy")  # of their own width
assert all((some[name] == array[name][1000:2000]).all() for name in array.dtype.names)
assert len(array[array["user"] == "u1"]) > 300
PY
# Texts in another encoding are bytes. NumPy takes zero bytes at their end for none.
printf 'request,age,user\n\xfc,1,u\nlonger,2,v\nz\0,3,w\n' >bytes.csv
sed '/click/d' schema.yaml >bytes.yaml
import_with bytes.yaml --vocabulary-from train --output bytes bytes.csv >/dev/null 2>&1
$renzan predict run --data bytes --rows 0 2 --output bytes.npy --with request 2>/dev/null
python3 - <<'PY' || fail "not the bytes"
import numpy as np
array = np.load("bytes.npy")
assert array["request"].dtype == "S6" and list(array["request"]) == [b"\xfc", b"longer"], array
PY
for workers in 1 2; do
  expect_exit 65 "--with request: a text ends in a zero byte, which NumPy does not keep: write .parquet or .csv" \
    $renzan predict run --data bytes --output s.npy --with request --workers $workers
  [ -z "$(ls -A | grep '^\.\?s\.')" ] || fail "a file was written"
done
for data in train plain; do
  $renzan predict run --data $data --output $data.npy 2>/dev/null
done
cmp train.npy plain.npy || fail "other scores with keys"
expect_exit 64 "did you mean 'request'?" \
  $renzan predict run --data test --output s.csv --with reqest
expect_exit 64 "no such column" $renzan predict run --data plain --output s.csv --with request

# A wrong place is an error before anything is read.
for workers in 1 2; do
  expect_exit 73 "cannot create none/s.csv: none does not exist: create this directory first" \
    $renzan predict run --data no-data --output none/s.csv --workers $workers
done
expect_exit 73 "cannot create schema.yaml/s.csv: schema.yaml is not a directory" \
  $renzan predict run --data test --output schema.yaml/s.csv
# Keys are read before there is a file.
sed -i 's/r-5001/r-5002/' test/shard-00000/request.key.npy
expect_exit 65 "request.key.npy is corrupt" \
  $renzan predict run --data test --output s.csv --with request
[ -z "$(ls -A | grep '^\.\?s\.')" ] || fail "a file was written"
$renzan predict run --data test --output s.csv 2>/dev/null
