#!/usr/bin/env bash
# The Python wheel needs nothing but a machine's C and C++ libraries, its workers work, and it
# neither takes symbols from PyTorch nor gives it any.
#   tests/e2e/wheel_test.sh RENZAN                    unpacks it, for the distribution's Python
#   tests/e2e/wheel_test.sh RENZAN --pip PYTHON...    also installs it for these, with PyPI's NumPy
#   tests/e2e/wheel_test.sh RENZAN --chroot           also installs it on a bare Debian 12, as root
#                                                     and with a network: one made by debootstrap,
#                                                     or a copy of it in $RENZAN_BARE
source "$(dirname "$0")/lib.sh"
build=$(dirname "$(dirname "$renzan")")
{ [ -e "$build/lib/librenzan_mpi.so" ] && [ -e "$build/lib/librenzan_s3.so" ]; } ||
  fail "build renzan_shared, renzan_shared_mpi, renzan_s3 first"
unset RENZAN_LIBRARY LD_LIBRARY_PATH PYTHONPATH
export PYTHONDONTWRITEBYTECODE=1

status=0
wheel=$("$source_root/scripts/wheel" "$work/first" "$build" 2>wheel.txt) || status=$?
[ $status -ne 69 ] || skip "$(tail -1 wheel.txt)"
[ $status -eq 0 ] || { cat wheel.txt >&2; fail "no wheel"; }
case $wheel in
  */renzan-*-py3-none-manylinux_*.whl) ;;
  *) fail "a wheel for what? $wheel" ;;
esac
cmp "$wheel" "$("$source_root/scripts/wheel" "$work/second" "$build" 2>/dev/null)" ||
  fail "another wheel from the same build"

site=$work/site
python3 -m zipfile --extract "$wheel" "$site"
version=$("$renzan" --version | head -1 | cut -d' ' -f2)
grep -qx "Version: $version" "$site"/renzan-*.dist-info/METADATA || fail "not version $version"
[ -e "$site/renzan/py.typed" ] || fail "no py.typed"

# From the machine: what every Linux with a Python of that glibc has, and Open MPI.
machine='lib(c|m|gcc_s|stdc\+\+|z)\.so|ld-linux|linux-vdso'
ldd "$site/renzan/lib/librenzan.so" >ldd.txt
! grep -Ev "$machine" ldd.txt | grep -v "=> $site/renzan/lib/../../renzan.libs/" ||
  fail "libraries that are not in the wheel"
for library in "$site"/renzan.libs/*; do
  name=$(basename "$library")
  [[ $name =~ -[0-9a-f]{8}\.so ]] || fail "another package may have a library of this name: $name"
done
ls "$site"/renzan/lib/licenses/libssl*.txt >/dev/null || fail "no licence of OpenSSL"
! nm --dynamic --defined-only "$site/renzan/lib/librenzan.so" | grep -v ' RENZAN_0\.1\| renzan_' ||
  fail "librenzan.so exports more than its interface"

# workers PYTHON WORKER BACKEND ARGUMENT...: two workers of the installed package.
workers() {
  PYTHONPATH=${packages:-}:$source_root/tests/python "$1" - "${@:2}" <<'PYTHON'
import sys
import workers
name, backend, *arguments = sys.argv[1:]
for line in workers.run(f"{workers.__file__[:-len('workers.py')]}{name}_worker.py", arguments,
                        backend=backend):
    print(line.strip())
PYTHON
}

packages=$site
for backend in $(several_worker_backends); do
  [ "$(workers python3 communicator "$backend")" = $'ok\nok' ] || fail "workers over $backend"
done
# libcurl comes from the machine: it is loaded, and finds no server.
AWS_ENDPOINT_URL=http://127.0.0.1:1 AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret \
  RENZAN_S3_RETRY_FOR=1s PYTHONPATH=$site python3 - <<'PYTHON' || fail "no object stores"
import renzan
try:
    renzan.load_checkpoint("s3://bucket/run")
except renzan.Error as error:
    assert error.exit_status == 74 and "127.0.0.1:1" in str(error), error
PYTHON
if python3 -c "import torch" 2>/dev/null; then
  for order in "torch renzan" "renzan torch"; do
    # shellcheck disable=SC2086
    workers python3 beside_torch gloo $order "$work/rendezvous" || fail "import $order"
    rm -f rendezvous
  done

  # Which library each symbol was found in. A few of libstdc++ are unique in a process by design.
  LD_BIND_NOW=1 LD_DEBUG=bindings LD_DEBUG_OUTPUT=$work/bindings PYTHONPATH=$site \
    python3 -c "import torch, renzan; renzan.Communicator('local').barrier()"
  sed -En "s/.*binding file (.*) \[.*\] to (.*) \[.*\]: .* symbol \`(.*)'.*/\1 \2 \3/p" bindings.* |
    awk -v site="$site/" '(index($1, site) == 1) != (index($2, site) == 1)' >across.txt
  [ -s across.txt ] || fail "no bindings"
  ! grep -Ev "^$site/[^ ]* [^ ]*/($machine)|^$site/.* std(in|out|err)$|_ZZNSt" across.txt ||
    fail "symbols are shared with other libraries"
else
  echo "no PyTorch: not tried beside it"
fi

packages=""
pip_install() {
  "$1" -m venv --clear venv
  venv/bin/pip install --quiet --disable-pip-version-check "$wheel"
  [ "$(workers "$work/venv/bin/python3" communicator gloo)" = $'ok\nok' ] || fail "workers of $1"
  echo "installed for $(venv/bin/python3 --version), $(venv/bin/pip freeze | tr '\n' ' ')"
}
if [ "${2:-}" = --pip ]; then
  for python in "${@:3}"; do pip_install "$python"; done
fi
[ "${2:-}" = --chroot ] || exit 0

[ "$(id -u)" -eq 0 ] || skip "a chroot needs root"
bare=$work/bare
if [ -n "${RENZAN_BARE:-}" ]; then
  cp -a "$RENZAN_BARE" "$bare"
else
  command -v debootstrap >/dev/null || skip "no debootstrap"
  debootstrap --variant=minbase --include=python3-venv bookworm "$bare" \
    "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >debootstrap.txt ||
    { tail "$bare/debootstrap/debootstrap.log" >&2; fail "debootstrap"; }
fi
mount -t proc proc "$bare/proc"
trap 'umount "$bare/proc"; rm -rf "$work"' EXIT
in_chroot() { chroot "$bare" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root "$@"; }
! in_chroot /sbin/ldconfig -p | grep -E 'gloo|libfmt|hiredis|yaml-cpp' || fail "it is not bare"
python=$(in_chroot python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
python3 -m venv --clear venv
venv/bin/pip download --quiet --only-binary=:all: --python-version "$python" \
  --dest "$bare/root/wheels" "$wheel"
cp "$source_root"/tests/python/{workers,communicator_worker}.py "$bare/root/"
in_chroot sh -c 'python3 -m venv /root/venv &&
  /root/venv/bin/pip install --no-index --find-links /root/wheels renzan &&
  cd /root && venv/bin/python3 -c "
import pathlib
import workers
print(workers.run(pathlib.Path(\"communicator_worker.py\")))"' || fail "does not work"
echo "installed on Debian $(cat "$bare/etc/debian_version")"
