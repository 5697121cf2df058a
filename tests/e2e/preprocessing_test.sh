# A test set preprocessed differently from the training set is rejected: its metrics would be
# plausible but wrong.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --rows 4000 --seed 5 --output clicks.tsv >/dev/null
$renzan data import clicks.tsv --vocabulary threshold:3 --output data >/dev/null
$renzan data import clicks.tsv --vocabulary threshold:3 --dense none --output raw >/dev/null
$renzan data import clicks.tsv --vocabulary-from data --output test >/dev/null
small_config data
$renzan train small.yaml --run-dir run 2>/dev/null
$renzan eval run --data test >/dev/null

# The transform of dense features.
transform="raw: the transform of 'I1' is none, but that of the training data is log"
expect_exit 78 "$transform" $renzan eval run --data raw
expect_exit 78 "$transform" $renzan predict run --data raw --output scores.csv
[ ! -e scores.csv ] || fail "scores were written"
expect_exit 78 "$transform" $renzan train small.yaml --run-dir run2 --set data.eval.path=raw
expect_exit 78 "use the same (--dense" $renzan data import clicks.tsv --vocabulary-from data \
  --dense none --output raw2

# A vocabulary of the same size with other ids: reversing the lines changes the order of equally
# frequent values.
tac clicks.tsv >reversed.tsv
$renzan data import reversed.tsv --vocabulary threshold:3 --output reversed >/dev/null
expect_exit 78 "vocabulary-from" $renzan eval run --data reversed
$renzan data import reversed.tsv --vocabulary-from data --output reversed_same >/dev/null
$renzan eval run --data reversed_same >/dev/null

# A run resumes only with data that was preprocessed in the same way.
mv data old
mv raw data
expect_exit 78 "is another run's checkpoint: features.dense_transforms" \
  $renzan train small.yaml --run-dir run --set training.epochs=2

# The rule that maps labels to 0 and 1.
cat >at_least.yaml <<'YAML'
columns: {rating: {role: label, at_least: 4}, x: {role: dense}, c: {role: categorical}}
YAML
sed 's/at_least: 4/at_least: 3/' at_least.yaml >lower.yaml
awk 'BEGIN {
  print "rating,x,c"
  for (row = 0; row < 4000; row++) printf "%d,%g,%d\n", row % 6, row % 10, row % 50
}' >ratings.csv
import_ratings() { # SCHEMA OPTION...
  local schema=$1
  shift
  $renzan data import --format csv --schema $schema ratings.csv "$@"
}
import_ratings at_least.yaml --output ratings >/dev/null
import_ratings lower.yaml --output lower >/dev/null
small_config ratings
$renzan train small.yaml --run-dir ratings_run 2>/dev/null
$renzan eval ratings_run --data ratings >/dev/null
rules="by 'at_least 3', but those of the training data by 'at_least 4'"
expect_exit 78 "lower: its labels were mapped $rules" $renzan eval ratings_run --data lower
expect_exit 78 "the labels of ratings were mapped by 'at_least 4'" \
  import_ratings lower.yaml --vocabulary-from ratings --output lower2

# A dataset of version 1 does not record transforms: one warning, which names the side that lacks
# them, however many workers there are.
cp -r $source_root/renzan/data/testdata/version-1 old_data
cat >ab.yaml <<'YAML'
columns: {y: {role: label}, a: {role: dense}, b: {role: categorical}}
YAML
printf 'y,a,b\n1,2,x\n0,1,y\n1,1,z\n0,3,x\n' >ab.csv
expect_exit 0 "have the same transforms as in old_data: it does not record them" \
  $renzan data import --format csv --schema ab.yaml ab.csv --vocabulary-from old_data --output ab
small_config old_data
sed -i -e 's/, rows: [^}]*//g' -e 's/eval: {path: old_data/eval: {path: ab/' -e 's/256/2/' small.yaml
unrecorded="ab: cannot check that the transform of columns is as in the training data: "
expect_one_warning() { # SUFFIX COMMAND...
  local suffix=$1
  shift
  expect_exit 0 "$unrecorded$suffix does not record it" "$@"
  [ "$(grep -c "cannot check" out.txt)" -eq 1 ] || { cat out.txt; fail "not one warning: $*"; }
}
workers="--workers 2 --threads 1 --set numerics.virtual_workers=2"
expect_one_warning old_data $renzan train small.yaml --run-dir old_run $workers
[ "$(grep -c "has format version 1" out.txt)" -eq 1 ] || { cat out.txt; fail "not one warning"; }
expect_one_warning "the model" $renzan eval old_run --data ab $workers

# How the text of columns was read.
cat >spaces.yaml <<'YAML'
columns: {rating: {role: label, at_least: 4}, x: {role: dense}, c: {role: categorical}}
trim: true
YAML
import_ratings spaces.yaml --output spaces >/dev/null
expect_exit 78 "spaces: column 'c' was read as trim, but that of the training data as plain" \
  $renzan eval ratings_run --data spaces
expect_exit 78 "column 'c' was read into ratings as plain, here it is read as trim" \
  import_ratings spaces.yaml --vocabulary-from ratings --output spaces2
expect_exit 64 "--dense is only for --format criteo" \
  import_ratings at_least.yaml --dense log --output dense
