# Models of several days read one import of a later day's data, whose vocabularies continue theirs:
# each gives the scores that it gives on an import with its own vocabulary, bit for bit.
source "$(dirname "$0")/lib.sh" "$@"

# Users and tags keep coming, so that a bag may hold several that a model does not know. `rare` has
# a threshold, and `place` is hashed.
python3 - <<'PY'
import random
random.seed(11)
def write(path, rows, first, last):
    with open(path, "w") as out:
        out.write("y,w,x,user,rare,place,tags\n")
        for _ in range(rows):
            value = lambda: random.randrange(first, last)
            tags = "|".join(f"t{value() // 3}" for _ in range(random.randrange(5)))
            user = f"u{value()}" if random.random() < 0.95 else ""
            out.write(f"{random.randrange(2)},{random.choice([0, 1, 2.5])},{random.random():.3f},"
                      f"{user},r{value()},p{value()},{tags}\n")
write("monday.csv", 1500, 0, 200)
write("tuesday.csv", 1500, 100, 300)
write("later.csv", 1100, 150, 400)
PY
cat >schema.yaml <<'YAML'
columns:
  y: {role: label}
  w: {role: weight}
  x: {role: dense, transform: standardize}
  user: {role: categorical}
  rare: {role: categorical}
  place: {role: categorical}
  tags: {role: multi_hot}
YAML
import() { $renzan data import --format csv --schema schema.yaml "$@" >/dev/null; }
import monday.csv --vocabulary threshold:1 --vocabulary rare=threshold:4 \
  --vocabulary place=hash:50 --output monday
import tuesday.csv --vocabulary-from monday --grow --output tuesday
import later.csv --vocabulary-from tuesday --output later
import later.csv --vocabulary-from monday --output later_as_monday
cat >config.yaml <<'YAML'
seed: 3
data: {train: {path: monday}}
model:
  {embedding_dim: 4, bottom_mlp: [8], top_mlp: [8], cross_layers: 1, cross_rank: 4,
   tables: {tags: {pooling: mean}}}
training: {batch_size: 128, log_every: 1000}
optimizer: {dense: {learning_rate: 0.1}, sparse: {learning_rate: 0.5}}
YAML
$renzan train config.yaml --run-dir first 2>/dev/null
$renzan train config.yaml --set data.train.path=tuesday --initialize-from first --run-dir second \
  2>/dev/null

line="the vocabularies of the data continue the model's: "
for workers in 1 2; do
  for data in later later_as_monday; do
    rm -f $data.npy
    $renzan predict first --data $data --output $data.npy --workers $workers 2>$data.txt
    $renzan eval first --data $data --json --workers $workers >$data.json 2>>$data.txt
  done
  cmp later.npy later_as_monday.npy || fail "other scores with $workers workers"
  cmp later.json later_as_monday.json || fail "other metrics with $workers workers"
  [ $workers = 1 ] || cmp later.npy one.npy || fail "$workers workers give other scores"
  cp later.npy one.npy
  # Every lookup of a value that the model has no row for is counted once, also of those that
  # Tuesday's vocabulary lacks, too; on several workers as well, and not by padding.
  python3 - <<'PY' || fail "$(cat later.txt)"
import glob, numpy as np, re
def lookups(data):
    of = lambda name: np.concatenate([np.load(f) for f in sorted(glob.glob(f"{data}/shard-*/{name}"))])
    ids = of("ids.npy")
    assert ids.shape[1] == 3  # user, rare and place, which is hashed and so knows no unseen values
    return np.concatenate([ids[:, :2].ravel(), of("tags.values.npy")]), ids.shape[0]
(there, rows), (here, _) = lookups("later"), lookups("later_as_monday")
assert (there[there != here] > 1).all() and (here[there != here] == 1).all()
counted = re.findall(r"continue the model's: (\d+) lookups .* \((.*) % of all\)", open("later.txt").read())
unseen = (here == 1).sum()
assert (there == 1).sum() > 0 and unseen > (there != here).sum() > 0
assert counted == [(str(unseen), f"{100 * unseen / (len(here) + rows):.1f}")] * 2, (counted, unseen)
PY
  ! grep -q "$line" later_as_monday.txt || fail "$(cat later_as_monday.txt)"
done
# The newer model knows them all. Groups are those of the data, for every model.
$renzan eval second --data later --json >second.json 2>second.txt
! grep -q "$line" second.txt || fail "$(cat second.txt)"
for model in first second; do
  $renzan eval $model --data later --group-by user --top 1000 --json 2>/dev/null >$model.groups
done
python3 - <<'PY' || fail "other groups"
import json
first, second = (json.load(open(f"{model}.groups")) for model in ("first", "second"))
values = [[group["value"] for group in model["group_by"]["largest"]] for model in (first, second)]
assert values[0] == values[1] and len(values[0]) > 100, values
alone = json.load(open("later.json"))
assert {key: first[key] for key in alone} == alone
PY
expect_exit 0 "wrote 1100 scores" $renzan predict first --data later --output with.csv --with user
head -20 with.csv | grep -q "^u2" || fail "$(head -20 with.csv)"

# Training data trains the rows for unseen values, which cannot be undone; without that it is as good.
expect_exit 78 "a share of 0.01 of the lookups of 'user' read the row for unseen values" \
  $renzan eval first --data tuesday
import tuesday.csv --vocabulary-from monday --grow --unseen 0 --output grown
import tuesday.csv --vocabulary-from monday --output tuesday_as_monday
$renzan predict first --data grown --output grown.npy 2>/dev/null
$renzan predict first --data tuesday_as_monday --output as_monday.npy 2>/dev/null
cmp grown.npy as_monday.npy || fail "other scores on data that was grown"
expect_exit 0 "AUC" $renzan eval second --data tuesday

# Not where ids were given anew, nor the reverse.
import later.csv --vocabulary threshold:1 --vocabulary rare=threshold:4 --vocabulary place=hash:50 \
  --output anew
expect_exit 78 "ids, but that of the training data has" $renzan eval first --data anew
expect_exit 78 "its vocabulary does not continue that one" $renzan predict first --data anew \
  --output none.npy
expect_exit 78 "ids, but that of the training data has" $renzan eval second --data later_as_monday
expect_exit 78 "ids, but that of the training data has" $renzan train config.yaml \
  --set data.eval.path=later --run-dir none
