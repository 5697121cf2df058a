# Several hosts on this machine: network namespaces with a virtual Ethernet switch between them.
# Sourced after lib.sh. Everything is in namespaces named after this test, and disappears with them.
# Needs root.

hosts_prefix=rz$$
num_hosts=0

hosts_down() {
  local i pid
  for ((i = 0; i < num_hosts; i++)); do
    for pid in $(ip netns pids $hosts_prefix-host$i 2>/dev/null); do
      kill -KILL "$pid" 2>/dev/null || true
    done
    ip netns del $hosts_prefix-host$i 2>/dev/null || true
  done
  ip netns del $hosts_prefix-switch 2>/dev/null || true
  num_hosts=0
}

# hosts_up N [RATE]: N hosts, 10.77.0.1 and so on; each sends and receives at most RATE ("1gbit").
hosts_up() {
  local i host switch=$hosts_prefix-switch
  trap 'hosts_down; rm -rf "$work"' EXIT
  ip netns add $switch
  ip -n $switch link add name sw0 type bridge
  ip -n $switch link set sw0 up
  for ((i = 0; i < $1; i++)); do
    host=$hosts_prefix-host$i
    num_hosts=$((i + 1))
    ip netns add $host
    ip -n $switch link add name port$i type veth peer name eth0 netns $host
    ip -n $switch link set port$i master sw0
    ip -n $switch link set port$i up
    ip -n $host addr add 10.77.0.$((i + 1))/24 dev eth0
    ip -n $host link set lo up
    ip -n $host link set eth0 up
    if [ $# -gt 1 ]; then
      tc -n $host qdisc add dev eth0 root tbf rate $2 burst 256kb latency 100ms
      tc -n $switch qdisc add dev port$i root tbf rate $2 burst 256kb latency 100ms
    fi
  done
}

# can_make_hosts: whether this user and kernel can make them.
can_make_hosts() {
  command -v tc >/dev/null && ip netns add $hosts_prefix-probe 2>/dev/null &&
    ip netns exec $hosts_prefix-probe unshare -u true 2>/dev/null || return 1
  ip netns del $hosts_prefix-probe
}

# on_host I COMMAND...: with a host name of its own.
on_host() {
  local i=$1
  shift
  ip netns exec $hosts_prefix-host$i unshare -u sh -c 'hostname host'$i'; exec "$@"' sh "$@"
}

# train_on_hosts WORKERS_PER_HOST[xTHREADS] FLAG...: one run over Gloo on all hosts; its log is
# log.txt.
train_on_hosts() {
  local per_host=${1%x*} threads=1 rank=0 i local_rank status=0 pids=()
  [ "$1" = $per_host ] || threads=${1#*x}
  shift
  for ((i = 0; i < num_hosts; i++)); do
    for ((local_rank = 0; local_rank < per_host; local_rank++)); do
      RANK=$rank WORLD_SIZE=$((num_hosts * per_host)) LOCAL_RANK=$local_rank \
        MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 \
        on_host $i $renzan train "$@" --threads $threads --backend gloo >log$rank.txt 2>&1 &
      pids+=($!)
      rank=$((rank + 1))
    done
  done
  for pid in "${pids[@]}"; do
    wait $pid || status=$?
  done
  cat log*.txt >log.txt
  rm log?*.txt
  return $status
}
