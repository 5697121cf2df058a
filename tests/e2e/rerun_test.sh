# --rerun says whether the model is identical; checkpoint diff says where two differ.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
$renzan train small.yaml --run-dir first 2>/dev/null
expect_exit 0 "identical" $renzan train --rerun first --run-dir second --workers 2
expect_exit 0 "" $renzan checkpoint diff first/model second/model
expect_exit 1 "DIFFERENT" $renzan train --rerun first --run-dir third --set seed=4
expect_exit 1 "bottom.0.bias" $renzan checkpoint diff first/model third/model
expect_exit 66 "no/such" $renzan train --rerun no/such

# The data changed after the recorded run.
rm -r data
$renzan data synth --format dataset --seed 8 --rows 4000 --output data >/dev/null
expect_exit 65 "has changed since" $renzan train --rerun first --run-dir fourth
# Nor is a model evaluated on them without their name.
for model in first first/model; do
  expect_exit 65 "data has changed since $model was trained (fingerprint" $renzan eval $model
done
expect_exit 65 "or evaluate what is there now with --data data" $renzan eval first --workers 2
expect_exit 0 "AUC" $renzan eval first --data data
