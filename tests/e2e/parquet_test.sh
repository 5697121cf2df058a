#!/usr/bin/env bash
# `renzan data import --format parquet` makes the dataset that Python makes of the same files.
# Without its library it is one error that says what to do.
source "$(dirname "$0")/lib.sh" "$@"
build=$(dirname "$(dirname "$renzan")")
cat >schema.yaml <<'YAML'
columns:
  click: {role: label}
  age: {role: dense, transform: standardize, fill: mean}
  user: {role: categorical}
  city: {role: categorical, key: true}
  tags: {role: multi_hot}
  when: {role: date, date: "%Y-%m-%d %H:%M:%S", parts: {hour: {role: categorical}}}
  note: {role: skip}
YAML

# A program without the library.
mkdir -p bare/bin
cp "$renzan" bare/bin/
echo PAR1 >a.parquet
import="data import --format parquet --schema schema.yaml --output"
expect_exit 78 "error: the library that reads Parquet is missing" bare/bin/renzan $import bare a.parquet
expect_exit 78 "whose \`python3 -m renzan.data\` makes the same dataset" bare/bin/renzan $import bare a.parquet
expect_exit 66 "none.parquet: no such file" "$renzan" $import bare none.parquet
expect_exit 64 "standard input" "$renzan" $import bare -
expect_exit 64 "needs --schema" "$renzan" data import a.parquet --format parquet --output bare
[ ! -e bare/dataset.yaml ] || fail "something was written"

[ -e "$build/lib/librenzan_parquet.so" ] || skip "built without Arrow's C++ (RENZAN_ARROW)"
peers=${RENZAN_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/renzan/peers}-tables
python=$peers/bin/python3
"$python" -c 'import pyarrow' 2>/dev/null || skip "PyArrow is missing: bench/setup-peers tables"
"$python" - <<'PY'
import datetime
import pyarrow as pa
import pyarrow.parquet as pq

def table(rows, first):
    at = range(first, first + rows)
    start = datetime.datetime(2024, 2, 28)
    return pa.table({
        "click": pa.array([int(i % 3 == 0) for i in at], pa.int8()),
        "age": pa.array([None if i % 7 == 0 else i * 0.1 for i in at], pa.float32()),
        "user": pa.array([None if i % 13 == 0 else i * i % 71 for i in at], pa.int64()),
        "city": pa.array([f"city {i % 50}" for i in at], pa.string()).dictionary_encode(),
        "tags": pa.array([[f"t{j}" for j in range(i % 4)] for i in at],
                         pa.list_(pa.string())),
        "when": pa.array([start + datetime.timedelta(hours=i) for i in at], pa.timestamp("ms")),
        # What is skipped is not read: its type would be an error.
        "note": pa.array([{"a": i} for i in at], pa.struct([("a", pa.int64())])),
    })

pq.write_table(table(5000, 0), "a.parquet", row_group_size=1300)
pq.write_table(table(0, 0), "b.parquet")
pq.write_table(table(3000, 5000), "c.parquet", compression="zstd")
narrow = table(3000, 5000)
pq.write_table(narrow.set_column(2, "user", narrow["user"].cast(pa.int8()))
               .set_column(3, "city", narrow["city"].cast(pa.string())), "narrow.parquet")
other = table(10, 0)
pq.write_table(other.drop_columns(["city"]), "fewer.parquet")
pq.write_table(other.append_column("extra", pa.array(range(10))), "more.parquet")
pq.write_table(other.set_column(2, "user", pa.array([str(i) for i in range(10)])), "type.parquet")
pq.write_table(other.set_column(0, "click", pa.array([2] * 10, pa.int8())), "bad.parquet")
data = open("a.parquet", "rb").read()
open("cut.parquet", "wb").write(data[:-100])
# Its footer is whole, its pages are not.
open("damaged.parquet", "wb").write(data[:4] + bytes(len(data) // 4) + data[len(data) // 4 + 4:])
PY

# files DIRECTORY: what a dataset holds.
files() { (cd "$1" && find . -type f | LC_ALL=C sort | xargs sha256sum); }
# both NAME FLAGS...: imports the files both ways.
both() {
  local name=$1
  shift
  "$renzan" $import "$name.cc" "$@" a.parquet b.parquet c.parquet >out.txt 2>&1 || { cat out.txt; fail "import"; }
  PYTHONPATH=$source_root/python RENZAN_LIBRARY=$build/lib/librenzan.so "$python" -m renzan.data import --reader pyarrow \
    --schema schema.yaml --output "$name.py" "$@" a.parquet b.parquet c.parquet >out.txt 2>&1 ||
    { cat out.txt; fail "import in Python"; }
  cmp <(files "$name.cc") <(files "$name.py") || fail "$name: other datasets: $(diff <(files "$name.cc") <(files "$name.py"))"
}
both plain --vocabulary threshold:3
both split --split group:city@0.3 --vocabulary hash:100
# A column that only the split reads.
sed -i.bak 's/city: .*/city: {role: skip}/' schema.yaml
both skipped_city --split group:city@0.3
mv schema.yaml.bak schema.yaml
# Integers of another size are the same values.
"$renzan" $import narrow --vocabulary threshold:3 a.parquet b.parquet narrow.parquet >out.txt 2>&1 || { cat out.txt; fail "narrow"; }
cmp <(files plain.cc) <(files narrow) || fail "other integers make another dataset"
"$renzan" $import again a.parquet b.parquet c.parquet --vocabulary threshold:3 --shard-rows 999 >out.txt 2>&1 ||
  { cat out.txt; fail "shards"; }
grep -q "8000 rows" out.txt || fail "$(cat out.txt)"

refused() {
  expect_exit "$1" "$2" "$renzan" $import refused "${@:3}"
  [ ! -e refused ] || fail "something was written"
}
refused 65 "fewer.parquet: lacks the column 'city', which a.parquet has" a.parquet fewer.parquet
refused 65 "more.parquet: has the column 'extra', which a.parquet lacks" a.parquet more.parquet
refused 65 "type.parquet: column 'user' has the type string, and int64 in a.parquet" a.parquet type.parquet
refused 65 "cut.parquet: cannot be read as Parquet" a.parquet cut.parquet
refused 65 "schema.yaml: cannot be read as Parquet" a.parquet schema.yaml
refused 65 "damaged.parquet: reading failed after" a.parquet damaged.parquet
refused 65 "bad.parquet: row 0: column 1 (click): '2' is not 0 or 1" a.parquet bad.parquet
sed -i.bak 's/note: .*/note: {role: dense}/' schema.yaml
refused 78 "a.parquet: column 'note' of the table has the type struct" a.parquet
mv schema.yaml.bak schema.yaml
sed -i 's/user: {role: categorical}/user: {role: multi_hot, max_lenght: 2}/' schema.yaml
refused 78 "max_lenght" a.parquet
sed -i '/user: /d' schema.yaml
refused 78 "a.parquet: column 3 'user' of the table is not in schema.yaml" a.parquet
# Bad rows are counted in their file.
sed -i 's/^  age/  user: {role: skip}\n  age/' schema.yaml
"$renzan" $import skipped a.parquet bad.parquet --on-bad-row skip >out.txt 2>&1 || { cat out.txt; fail "skip"; }
grep -q "^bad.parquet,9," skipped/skipped_rows.csv || fail "$(cat skipped/skipped_rows.csv)"
# The types of columns that nobody reads may differ.
"$renzan" $import unread a.parquet type.parquet >out.txt 2>&1 || { cat out.txt; fail "unread"; }
# A pattern is matched by the first file; one that lacks its columns is named.
printf 'columns:\n  click: {role: label}\n  "ag*": {role: dense}\n  "*": {role: skip}\n' >schema.yaml
"$python" -c '
import pyarrow.parquet as pq
pq.write_table(pq.read_table("a.parquet").drop_columns(["age"]), "ageless.parquet")'
refused 65 "ageless.parquet: lacks the column 'age', which a.parquet has" a.parquet ageless.parquet
