# A daemon with TCP: HTTPS with a key that clients know, and users by their tokens, who have the
# rights of users and never the operator's.
. "$(dirname "$0")/lib.sh"

export RENZAN_STATE_DIR=$work/state
trap '$renzan cluster down --stop-jobs --socket "$work/state/socket" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
chmod 755 "$work"
user=$(id -un)
allow=""
if [ "$(id -u)" -eq 0 ]; then
  user=nobody
  allow="--allow-user nobody"
fi
as_operator() { env -u RENZAN_TOKEN_FILE -u RENZAN_SOCKET RENZAN_STATE_DIR="$work/state" "$renzan" "$@"; }

mkdir state
echo 0123 >state/token
$renzan cluster up --nodes 1 --gpus-per-node 1 --simulated --listen 127.0.0.1:0 $allow >up.txt
address=$(sed -n 's/^tcp *\(https[^,]*\),.*/\1/p' up.txt)
[ "$(stat -c %a state/tcp state/tcp/key.pem | xargs)" = "700 600" ] || fail "others can read the daemon's key"
[ ! -e state/token ] || fail "the old token is still there"
grep -q "state/token is no longer used" state/daemon.log

echo "== Without a token, and tokens that cannot be"
export RENZAN_SOCKET=$address
expect_exit 77 "cluster token create" $renzan jobs
expect_exit 64 "https://HOST:PORT" $renzan jobs --socket "http://${address#https://}"
expect_exit 64 "no such user" as_operator cluster token create --user nobdy
expect_exit 64 "--expires 2y" as_operator cluster token create --user "$user" --expires 2y
expect_exit 64 "--expires 367d" as_operator cluster token create --user "$user" --expires 367d
expect_exit 64 "--address a b:1" as_operator cluster token create --user "$user" --address "a b:1"
if [ "$(id -u)" -eq 0 ]; then
  expect_exit 64 "nobody is root over TCP" as_operator cluster token create --user root
  expect_exit 64 "--allow-user games" as_operator cluster token create --user games
fi
expect_exit 73 "ann/token" as_operator cluster token create --user "$user" --output ann/token
[ "$(as_operator cluster token list | wc -l)" -eq 1 ] || fail "there is a token that nobody has"

echo "== From another state directory, with the file of a token"
as_operator cluster token create --user "$user" --output far.token
[ "$(stat -c %a far.token)" = 600 ] || fail "others can read the token"
expect_exit 73 "far.token" as_operator cluster token create --user "$user" --output far.token
export RENZAN_STATE_DIR=$work/elsewhere
export RENZAN_TOKEN_FILE=$work/far.token
# Proxies must not be used.
export https_proxy=http://127.0.0.1:9 http_proxy=http://127.0.0.1:9
unset RENZAN_SOCKET  # the file knows it
job=$($renzan submit --name far -- sh -c 'id -un; exit 3')
$renzan job logs "$job" --follow >log.txt
grep -qx "$user" log.txt
wait_for sh -c "$renzan jobs | grep -q 'exit 3'"
$renzan cluster status >status.txt
grep -qF "$address" status.txt
expect_exit 0 far $renzan jobs --socket "$address/"
expect_exit 64 "https://HOST:PORT" $renzan jobs --socket https://127.0.0.1:x
expect_exit 64 "https://HOST:PORT" $renzan jobs --socket https://
RENZAN_SOCKET=$address expect_exit 64 "--listen" $renzan cluster up

echo "== A token gives no operator's rights, and makes no tokens"
for verb in "nodes cordon local-0" "cluster down" "cluster token list" "cluster token revoke 1" \
  "cluster token create --user $user"; do
  expect_exit 77 "only the operator" $renzan $verb
done
as_operator submit --name theirs -- sh -c 'echo private' >/dev/null
if [ "$user" = nobody ]; then
  expect_exit 77 "belongs to root" $renzan job logs 2
  expect_exit 77 "belongs to root" $renzan job cancel 2
fi

echo "== Another daemon does not get the token"
python3 - far.token wrong.token "$address" <<'PY'
import base64, json, sys
token = json.load(open(sys.argv[1]))
assert token["address"] == sys.argv[3] and token["user"] and token["expires"].endswith("Z"), token
token["pin"] = "sha256//" + base64.b64encode(bytes(32)).decode()
json.dump(token, open(sys.argv[2], "w"))
PY
chmod 600 wrong.token
RENZAN_TOKEN_FILE=$work/wrong.token expect_exit 77 "another key than the daemon" $renzan jobs
echo "$(head -c 64 /dev/zero | tr '\0' a)" >plain.token
RENZAN_TOKEN_FILE=$work/plain.token expect_exit 77 "not the file of a token" $renzan jobs
RENZAN_TOKEN_FILE=$work/gone.token expect_exit 77 "gone.token" $renzan jobs
cp far.token seen.token
chmod 644 seen.token
RENZAN_TOKEN_FILE=$work/seen.token expect_exit 0 "chmod 600" $renzan jobs --all

echo "== Expired and revoked ones are refused, without a restart"
as_operator cluster token create --user "$user" --expires 1s >short.token
chmod 600 short.token
sleep 1.1
RENZAN_TOKEN_FILE=$work/short.token expect_exit 77 "expired at" $renzan jobs
as_operator cluster token list >list.txt
[ "$(awk '$3 == "valid"' list.txt | wc -l)" -eq 1 ] || fail "$(cat list.txt)"
grep -q "^ *2 *$user *expired" list.txt || fail "$(cat list.txt)"

echo "== The token is in no file of the daemon, and survives a restart"
secret=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["token"])' far.token)
grep -rqF "$secret" state && fail "the token was written to a file"
as_operator cluster down
expect_exit 69 "no daemon at $address" $renzan jobs
as_operator cluster up --listen "${address#https://}" $allow >/dev/null
$renzan jobs --all >jobs.txt
grep -q far jobs.txt
expect_exit 66 "no token 7" as_operator cluster token revoke 7
as_operator cluster token revoke 1 >revoked.txt
grep -q "token 1 of $user is revoked" revoked.txt
expect_exit 77 "has been revoked" $renzan jobs
unset RENZAN_TOKEN_FILE
RENZAN_STATE_DIR=$work/state expect_exit 69 "already running" $renzan cluster up --listen nonsense
RENZAN_STATE_DIR=$work/other expect_exit 64 "HOST:PORT" $renzan cluster up --foreground --listen nonsense
RENZAN_STATE_DIR=$work/other expect_exit 64 "to 65535" $renzan cluster up --foreground --listen 127.0.0.1:70000
