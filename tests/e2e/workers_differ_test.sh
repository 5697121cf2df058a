# Workers that would compute different bits are rejected with an error that names the difference:
# another build, another value in the configuration.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data

# together FRAGMENT PROGRAM OPTION...: worker 1 is PROGRAM with OPTIONs, and both end with 78.
together() {
  local fragment=$1 port rank
  shift
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
  export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
  RANK=0 LOCAL_RANK=0 $renzan train small.yaml --run-dir run >log.0 2>&1 &
  launcher=$!
  RANK=1 LOCAL_RANK=1 "$@" >log.1 2>&1 && fail "worker 1 was not rejected: $*"
  rank=0
  wait $launcher || rank=$?
  launcher=""
  [ $rank -eq 78 ] || { cat log.0 log.1; fail "worker 0 ended with $rank"; }
  for rank in 0 1; do
    grep -qF -- "$fragment" log.$rank || { cat log.$rank; fail "worker $rank: no '$fragment'"; }
  done
  [ ! -e run ] || fail "a run directory was created"
}

# The same program with another build id.
build=$($renzan --version | sed -nE 's/.*build ([0-9a-f]{12}).*/\1/p')
[ ${#build} -eq 12 ] || fail "no build id: $($renzan --version)"
other=$(echo $build | tr 0-9a-f 1-9a-f0)
sed "s/$build/$other/g" "$renzan" >other
chmod +x other
together "worker 1 has a different build than worker 0" ./other train small.yaml --run-dir run

together "different configuration than worker 0: model.embedding_dim is 4, not 8" \
  $renzan train small.yaml --run-dir run --set model.embedding_dim=4 \
  --set optimizer.dense.learning_rate=0.5
