# A daemon with TCP: its token is required, and everything works as with the socket.
. "$(dirname "$0")/lib.sh"

export RENZAN_STATE_DIR=$work/state
trap '$renzan cluster down --stop-jobs --socket "$work/state/socket" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

$renzan cluster up --nodes 1 --gpus-per-node 1 --simulated --listen 127.0.0.1:0 >up.txt
address=$(sed -n 's/^tcp *\(http[^,]*\),.*/\1/p' up.txt)
token=$(cat state/token)
[ "$(stat -c %a state/token)" = 600 ] || fail "others can read the token"

echo "== From another state directory, with a copy of the token"
export RENZAN_STATE_DIR=$work/elsewhere
export RENZAN_SOCKET=$address
expect_exit 77 "elsewhere/token" $renzan jobs
grep -q RENZAN_TOKEN_FILE out.txt
mkdir elsewhere
echo "0${token:1}x" >wrong
RENZAN_TOKEN_FILE=$work/wrong expect_exit 77 "wrong token" $renzan jobs
cp state/token copy
export RENZAN_TOKEN_FILE=$work/copy
# Proxies must not be used: they would see the token.
export http_proxy=http://127.0.0.1:9
job=$($renzan submit --name far -- sh -c 'echo here; exit 3')
$renzan job logs "$job" --follow >log.txt
grep -qx here log.txt
wait_for sh -c "$renzan jobs | grep -q 'exit 3'"
$renzan cluster status >status.txt
grep -qF "$address" status.txt
expect_exit 64 "--listen" $renzan cluster up
expect_exit 0 far $renzan jobs --socket "$address/"
expect_exit 64 "http://HOST:PORT" $renzan jobs --socket http://127.0.0.1:x
expect_exit 64 "http://HOST:PORT" $renzan jobs --socket http://

echo "== The token is in no log, and survives a restart"
grep -rqF "$token" state --exclude=token && fail "the token was written to a file"
$renzan cluster down
expect_exit 69 "no daemon at $address" $renzan jobs
unset RENZAN_SOCKET
RENZAN_STATE_DIR=$work/state $renzan cluster up --listen "${address#http://}" >/dev/null
RENZAN_SOCKET=$address $renzan jobs --all >jobs.txt
grep -q far jobs.txt
RENZAN_STATE_DIR=$work/state expect_exit 69 "already running" $renzan cluster up --listen nonsense
RENZAN_STATE_DIR=$work/other expect_exit 64 "HOST:PORT" $renzan cluster up --foreground --listen nonsense
RENZAN_STATE_DIR=$work/other expect_exit 64 "to 65535" $renzan cluster up --foreground --listen 127.0.0.1:70000
