# A table of more than 2^31 - 1 rows: its ids take 64 bits in the dataset, and a plan says what
# workers need. RENZAN_TEST_LARGE=1 also trains it (18 GiB of memory, 12 GiB of disk): the same model
# with one, two and three workers.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format criteo --seed 3 --rows 20000 --output day.tsv >/dev/null
$renzan data import --format criteo --vocabulary hash:1000 --vocabulary C26=hash:3000000000 \
  --output data day.tsv >/dev/null
[ -f data/shard-00000/C26.ids.npy ] || fail "no file of wide ids"
grep -q "^format_version: 3$" data/dataset.yaml || fail "$(head data/dataset.yaml)"
$renzan data verify data
$renzan data inspect data --json | python3 -c '
import json, sys
wide = json.load(sys.stdin)["features"][-1]
assert wide["num_embeddings"] == 3000000000, wide
assert any(int(top["value"]) > 1 << 31 for top in wide["top"]), wide
' || fail "data inspect does not show wide ids"

cat >small.yaml <<'Y'
data: {train: {path: data}}
model: {embedding_dim: 8, bottom_mlp: [16], top_mlp: [16], tables: {C26: {embedding_dim: 1}}}
training: {batch_size: 512, max_steps: 20}
numerics: {embedding_precision: bf16}
checkpoint: {every: "0"}
Y
expect_exit 78 "have 3000000000 rows, but at most 2^31 - 1 can be in one shard" \
  $renzan train small.yaml --run-dir one --set numerics.row_blocks=1
[ ! -e one/model ] || fail "a refused run has a model"
echo 'memory_gib: 64' >one_worker.yaml
$renzan plan small.yaml --topology one_worker.yaml --output plan.yaml >plan.txt ||
  fail "$(cat plan.txt)"
grep -q "it fits" plan.txt || fail "$(cat plan.txt)"
$renzan plan small.yaml --workers 4 >plan.txt || fail "$(cat plan.txt)"
grep -q "1 row_wise" plan.txt || fail "$(cat plan.txt)"

[ -n "${RENZAN_TEST_LARGE:-}" ] || exit 0
for workers in 1 2 3; do
  $renzan train small.yaml --run-dir run$workers --workers $workers >log.txt 2>&1 ||
    fail "$(cat log.txt)"
  sha256_of run$workers >sha256.$workers
  rm -r run$workers/model
done
cmp sha256.1 sha256.2 || fail "two workers have other bits than one"
cmp sha256.2 sha256.3 || fail "three workers have other bits than two"
