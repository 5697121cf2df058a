# Workers that would compute different bits are rejected with an error that names the difference:
# another build, another value in the configuration, another model, other data.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data

# together FRAGMENT DIR COMMAND...: runs "${worker0[@]}" here as worker 0, and COMMAND in DIR as
# worker 1. Both must end with 78 and say FRAGMENT.
together() {
  local fragment=$1 dir=$2 port rank ended=()
  shift 2
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
  export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
  RANK=0 LOCAL_RANK=0 "${worker0[@]}" >log.0 2>&1 &
  launcher=$!
  (cd "$dir" && RANK=1 LOCAL_RANK=1 exec "$@") >log.1 2>&1 && ended[1]=0 || ended[1]=$?
  wait $launcher && ended[0]=0 || ended[0]=$?
  launcher=""
  for rank in 0 1; do
    [ ${ended[$rank]} -eq 78 ] ||
      { cat log.0 log.1; fail "worker $rank ended with ${ended[$rank]}"; }
    grep -qF -- "$fragment" log.$rank || { cat log.$rank; fail "worker $rank: no '$fragment'"; }
  done
  unset WORLD_SIZE MASTER_ADDR MASTER_PORT
}

# The same program with another build id.
build=$($renzan --version | sed -nE 's/.*build ([0-9a-f]{12}).*/\1/p')
[ ${#build} -eq 12 ] || fail "no build id: $($renzan --version)"
# Its end stays: the linker may have merged it with another string (of an id that ends in "d", with
# the name of the regular expression class \d).
other=$(echo ${build:0:6} | tr 0-9a-f 1-9a-f0)${build:6}
sed "s/$build/$other/g" "$renzan" >other
chmod +x other
worker0=($renzan train small.yaml --run-dir run)
together "worker 1 has a different build than worker 0" . \
  ./other train small.yaml --run-dir run

together "different configuration than worker 0: model.embedding_dim is 4, not 8" . \
  "${worker0[@]}" --set model.embedding_dim=4 --set optimizer.dense.learning_rate=0.5

# Tables whose names have the same beginning.
names_with_colons colons
worker0=($renzan train colons.yaml --run-dir run)
sed 's/"user:id": {pooling: sum}/"user:id": {pooling: mean}/' colons.yaml >mean.yaml
together 'model.tables."user:id".pooling is mean, not sum' . \
  $renzan train mean.yaml --run-dir run
[ ! -e run ] || fail "a run directory was created"

# Each host has its own copy of the model and of the data, under the same path.
$renzan train small.yaml --run-dir run 2>/dev/null
mkdir elsewhere
cp -r data elsewhere/data
$renzan train small.yaml --run-dir elsewhere/run --set seed=4 2>/dev/null
for verb in "eval" "predict --output scores.npy"; do
  worker0=($renzan $verb run --data data --rows 0 3000)
  together "worker 1 has a different model in run/model than worker 0" elsewhere "${worker0[@]}"
done
rm -r elsewhere/run elsewhere/data
cp -r run elsewhere/run
$renzan data synth --format dataset --seed 8 --rows 4000 --output elsewhere/data >/dev/null
for verb in "eval" "predict --output scores.npy"; do
  worker0=($renzan $verb run --data data --rows 0 3000)
  together "worker 1 has a different content in data than worker 0" elsewhere "${worker0[@]}"
done
[ ! -e scores.npy ] || fail "scores were written"
