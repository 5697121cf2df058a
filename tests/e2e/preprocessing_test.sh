# A test set that was preprocessed differently from the training set is rejected: its metrics would
# be plausible but wrong.
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
