# A run that starts from another model: what both have is taken, on any workers and after a kill, and
# only where the user allows it.
source "$(dirname "$0")/lib.sh" "$@"

python3 - <<'PY'
import random
random.seed(7)
def write(path, rows, last):
    with open(path, "w") as out:
        out.write(f"click,age,price,user,item,{last}\n")
        for _ in range(rows):
            user, item = random.randrange(60), random.randrange(40)
            click = random.random() < (0.7 if (user + item) % 3 else 0.2)
            out.write(f"{int(click)},{random.randrange(20, 70)},{random.random():.3f},"
                      f"u{user},i{item},x{random.randrange(9)}\n")
write("monday.csv", 1280, "city")
write("tuesday.csv", 1280, "shop")
PY
for day in monday tuesday; do
  cat >$day.yaml <<YAML
columns:
  click: {role: label}
  age: {role: dense, transform: log}
  price: {role: dense}
  user: {role: categorical}
  item: {role: categorical}
  $(head -1 $day.csv | cut -d, -f6): {role: categorical}
YAML
  $renzan data import --format csv --schema $day.yaml --vocabulary threshold:1 --output $day $day.csv \
    >/dev/null
done
config() { # NAME MODEL: of these features
  cat >$1.yaml <<YAML
seed: 4
data: {train: {path: monday}}
model: {$2, embedding_dim: 8}
training: {batch_size: 128, epochs: 1, log_every: 1000}
optimizer:
  dense: {type: adagrad, learning_rate: 0.01}
  sparse: {type: adagrad, learning_rate: 0.1}
YAML
}
config deepfm "type: deepfm, top_mlp: [16, 8]"
config wider "type: deepfm, top_mlp: [24, 8]"
config fm "type: fm"
config dlrm "type: dlrm, bottom_mlp: [16], top_mlp: [16]"
train() { $renzan train "$@" >log.txt 2>&1 || { show_log; fail "exit $?: $*"; }; }
train deepfm.yaml --run-dir deepfm
train dlrm.yaml --run-dir dlrm

# One sha256 on any workers; what was taken, begins anew and is left is said.
starts() { # NAME SOURCE CONFIG OPTION...
  local name=$1 from=$2
  shift 2
  train "$@" --initialize-from $from --initialize-partly --run-dir $name.2 --workers 2
  train "$@" --initialize-from $from --initialize-partly --run-dir $name.3 --workers 3
  train "$@" --initialize-from $from --initialize-partly --run-dir $name
  for workers in 2 3; do
    [ "$(sha256_of $name.$workers)" = "$(sha256_of $name)" ] || fail "$name: another model on $workers"
  done
}
# In the models of two runs: the weights of tables, and dense parameters, by name. PATTERN...
equal() { # RUN RUN PATTERN...
  python3 - "$@" <<'PY'
import glob, json, re, struct, sys
def tensors(run):
    found = {}
    for path in glob.glob(f"{run}/model/*.safetensors"):
        data = open(path, "rb").read()
        size = struct.unpack("<Q", data[:8])[0]
        for key, info in json.loads(data[8:8 + size]).items():
            if key != "__metadata__":
                begin, end = info["data_offsets"]
                found[key] = data[8 + size + begin:8 + size + end]
    return found
a, b = tensors(sys.argv[1]), tensors(sys.argv[2])
for pattern in sys.argv[3:]:
    keys = [key for key in a if re.fullmatch(pattern, key)]
    if not keys or any(a[key] != b.get(key) for key in keys):
        sys.exit(f"{sys.argv[1]} and {sys.argv[2]} differ in {pattern}: {keys}")
PY
}
no_steps=(--set training.max_steps=0)

# A model without the MLP.
starts fm deepfm fm.yaml
expect_log "taken: tables 'city', 'item', 'user'; dense parameters 'first_order.bias', 'linear.0.bias', 'linear.0.weight'"
expect_log "begin as initialised: nothing"
expect_log "left: 'deep.0.bias', 'deep.0.weight', 'deep.1.bias', 'deep.1.weight', 'deep.2.bias', 'deep.2.weight'"
starts fm0 deepfm fm.yaml "${no_steps[@]}"
equal fm0 deepfm 'embedding\..*weight' 'embedding\..*/adagrad' 'linear\..*' 'first_order\..*'
# And the other way round.
starts deepfm2 fm deepfm.yaml
expect_log "'deep.0.weight' is missing there"

# A wider MLP.
starts wider deepfm wider.yaml
expect_log "begin as initialised: 'deep.0.weight' is [16, 26] there and [24, 26] here, 'deep.0.bias' is [16] there and [24] here, 'deep.1.weight' is [8, 16] there and [8, 24] here"
expect_log "left: nothing"
starts wider0 deepfm wider.yaml "${no_steps[@]}"
train wider.yaml --run-dir drawn "${no_steps[@]}"
equal wider0 deepfm 'embedding\..*' 'deep\.2\..*' 'deep\.1\.bias.*'
equal wider0 drawn 'deep\.0\.weight.*' 'deep\.1\.weight.*'

# A table fewer and one more, and rows of another dimension. A weight of the same shape that reads
# other columns begins anew.
tuesday=(--set data.train.path=tuesday)
starts tables dlrm dlrm.yaml "${tuesday[@]}"
! grep -q "other features" log.txt || fail "the tables say it"
expect_log "taken: tables 'item', 'user'; dense parameters 'bottom.0.bias'"
expect_log "begin as initialised: table 'shop' is missing there, 'top.0.weight' reads other columns there"
expect_log "left: table 'city'"
starts tables0 dlrm dlrm.yaml "${tuesday[@]}" "${no_steps[@]}"
train dlrm.yaml --run-dir drawn2 "${tuesday[@]}" "${no_steps[@]}"
equal tables0 dlrm 'bottom\..*' 'top\.0\.bias.*' 'top\.1\..*'
equal tables0 drawn2 'embedding\.shop\..*' 'top\.0\.weight.*'
narrow=(--set model.tables.user.embedding_dim=4)
starts narrow deepfm deepfm.yaml "${narrow[@]}" "${no_steps[@]}"
expect_log "begin as initialised: table 'user' has rows of 9 values there and 5 here, 'projection.user.weight' is missing there, 'deep.0.weight' reads other columns there"
train deepfm.yaml --run-dir drawn3 "${narrow[@]}" "${no_steps[@]}"
equal narrow drawn3 'embedding\.user\..*'
equal narrow deepfm 'embedding\.item\..*' 'deep\.0\.bias.*' 'deep\.1\..*'

# Another dense feature in the place of one, and one fewer.
dense() { # NAME SCHEMA_EDIT
  sed "$2" monday.yaml >$1.schema.yaml
  $renzan data import --format csv --schema $1.schema.yaml --vocabulary threshold:1 --output $1 \
    <(sed "1s/price/${3:-price}/" monday.csv) >/dev/null
}
dense cost s/price/cost/ cost
starts cost.run dlrm dlrm.yaml --set data.train.path=cost
expect_log "other features: the dense feature 'cost' is missing there, the dense feature 'price' is missing here"
expect_log "begin as initialised: 'bottom.0.weight' reads other columns there"
dense fewer 's/price: .*/price: {role: skip}/'
starts fewer.run dlrm dlrm.yaml --set data.train.path=fewer
expect_log "begin as initialised: 'bottom.0.weight' is [16, 2] there and [16, 1] here"

# A table that two features share is taken for the one that is left; for another feature it is not.
shared() { # NAME COLUMNS USER_SCHEMA
  sed "1s/.*/click,age,price,$2,city/" monday.csv >$1.csv
  { sed '/user:\|item:/d' monday.yaml; printf '%s\n' "${@:3}"; } >$1.schema.yaml
  $renzan data import --format csv --schema $1.schema.yaml --vocabulary threshold:1 --output $1 \
    $1.csv >/dev/null
}
categorical='role: categorical'
shared friends user,friend "  user: {$categorical}" "  friend: {$categorical, table: user}"
shared alone user,friend "  user: {$categorical}" "  friend: {role: skip}"
shared renamed who,friend "  who: {$categorical, table: user}" "  friend: {$categorical, table: user}"
train fm.yaml --run-dir friends.run --set data.train.path=friends
starts alone.run friends.run fm.yaml --set data.train.path=alone
expect_log "other features: the categorical feature 'friend' is missing here"
expect_log "73 taken, none new, 40 dropped (user 40)"
expect_log "taken: tables 'city', 'user'"
train fm.yaml --run-dir alone.only --set data.train.path=alone
starts renamed.run alone.only fm.yaml --set data.train.path=renamed
expect_log "begin as initialised: table 'user' has other features there"

# Adam counts the steps of what begins as initialised, too.
adam=(--set optimizer.dense.type=adam --set optimizer.sparse.type=adam)
train deepfm.yaml --run-dir adam "${adam[@]}"
starts adam.wider adam wider.yaml "${adam[@]}"
expect_log "adam's bias correction counts the steps of the model for dense parameters that begin"
starts adam.fm adam fm.yaml "${adam[@]}"
! grep -q "bias correction" log.txt || fail "nothing begins anew"

# The graph that --print-config prints is the same model, and needs no allowance.
for type in deepfm dlrm; do
  { sed '/^model:/d' $type.yaml
    $renzan train --print-config $type.yaml | sed -n '/^# model:/,$ s/^# //p'; } >$type.blocks.yaml
  train $type.yaml --run-dir $type.again --initialize-from $type
  train $type.blocks.yaml --run-dir $type.blocks --initialize-from $type --workers 2
  [ "$(sha256_of $type.blocks)" = "$(sha256_of $type.again)" ] || fail "$type: another model as blocks"
  train $type.yaml --run-dir $type.back --initialize-from $type.blocks "${no_steps[@]}"
  equal $type.back $type.blocks '.*'
done

# The choice is recorded: a run that is resumed or repeated needs neither the flag nor, if it has a
# checkpoint, the other model; one that was killed before its first checkpoint starts again.
partly=(--initialize-from deepfm --initialize-partly)
train fm.yaml --run-dir resumed "${partly[@]}" --set training.max_steps=5
mv deepfm aside
train --resume --run-dir resumed --set training.max_steps=-1 --workers 2
mv aside deepfm
[ "$(sha256_of resumed)" = "$(sha256_of fm)" ] || fail "another model when resumed"
rm -r fm.3/checkpoints fm.3/model
train fm.yaml --run-dir fm.3 "${partly[@]}"
[ "$(sha256_of fm.3)" = "$(sha256_of fm)" ] || fail "another model after a restart"
expect_exit 78 "training.initialize_partly is true there and false here" \
  $renzan train fm.yaml --run-dir fm --initialize-from deepfm
expect_exit 0 identical $renzan train --rerun fm --run-dir fm.repeated
train fm.yaml --run-dir by_key --initialize-from deepfm --set training.initialize_partly=true
[ "$(sha256_of by_key)" = "$(sha256_of fm)" ] || fail "another model by the key"

# Without the flag, one error lists what differs, and how to allow it; nothing is written.
refuses() { # FRAGMENT CONFIG OPTION...
  local fragment=$1
  shift
  expect_exit 78 "$fragment" $renzan train "$@" --run-dir refused
  [ ! -e refused ] || fail "a run directory after: $fragment"
}
refuses "model.type is deepfm there and fm here, and the models have 6 differences: 'deep.0.bias' is missing here" \
  fm.yaml --initialize-from deepfm
refuses "'deep.2.weight' is missing here; to take what both have, and let the rest begin as initialised, add --initialize-partly (training.initialize_partly: true)" \
  fm.yaml --initialize-from deepfm
refuses "3 differences: 'deep.0.weight' is [16, 26] there and [24, 26] here" \
  wider.yaml --initialize-from deepfm
refuses "3 differences: table 'shop' is missing there, 'top.0.weight' reads other columns there, table 'city' is missing here" \
  dlrm.yaml --initialize-from dlrm "${tuesday[@]}"
refuses "'projection.user.weight' is missing there" deepfm.yaml --initialize-from deepfm "${narrow[@]}"
config deep "type: deepfm, top_mlp: [16, 8, 8, 8, 8, 8, 8, 8]"
refuses ", and 4 more; to take" deep.yaml --initialize-from deepfm
sed 's/, fm, /, /' deepfm.blocks.yaml >no_fm.yaml
sed -i '/^ *fm:/,/^ *inputs:/d' no_fm.yaml
refuses "the models have 1 difference: other blocks compute the output from the same parameters" \
  no_fm.yaml --initialize-from deepfm
refuses "no table or dense parameter is in both models" dlrm.yaml --initialize-from deepfm \
  --initialize-partly
refuses "training.initialize_partly needs training.initialize_from" fm.yaml --initialize-partly
expect_exit 64 "--rerun" $renzan train --rerun fm --initialize-partly
# What both read must be read the same way.
sed 's/transform: log/transform: standardize/' tuesday.yaml >scaled.yaml
$renzan data import --format csv --schema scaled.yaml --vocabulary threshold:1 --output scaled \
  tuesday.csv >/dev/null
refuses "the transform of 'age' is standardize:" dlrm.yaml --initialize-from dlrm \
  --initialize-partly --set data.train.path=scaled
