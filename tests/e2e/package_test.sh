#!/usr/bin/env bash
# The Debian package: its files, its dependencies, and that its program runs.
#   tests/e2e/package_test.sh RENZAN            unpacks it
#   tests/e2e/package_test.sh RENZAN --chroot   also installs it on a bare Debian 12, as root and with
#                                               a network: one made by debootstrap, or a copy of it
#                                               in $RENZAN_BARE
source "$(dirname "$0")/lib.sh"
build=$(dirname "$(dirname "$renzan")")
for tool in cpack dpkg-deb dpkg-shlibdeps file strip; do
  command -v $tool >/dev/null || skip "no $tool: apt install dpkg-dev file binutils cmake"
done
[ -e "$build/pages/stamp" ] || fail "build the target renzan_pages first"

deb=$(readlink -f "$("$source_root/scripts/package" "$build" 2>package.txt)") || {
  cat package.txt >&2
  fail "no package"
}
trap 'rm -rf "$work" "$build/package"' EXIT
dpkg-deb --field "$deb" >field.txt
grep -q '^Package: renzan$' field.txt || fail "$(cat field.txt)"
for library in libc6 libgloo libopenmpi libsqlite3 libcurl libmicrohttpd; do
  grep '^Depends:' field.txt | grep -q "$library" || fail "does not depend on $library"
done
dpkg-deb --extract "$deb" root
for file in bin/renzan lib/librenzan_jobs.so libexec/renzan/renzan-supervisor share/man/man1/renzan-train.1 \
  share/bash-completion/completions/renzan share/zsh/vendor-completions/_renzan include/renzan.h \
  lib/librenzan.so.0 lib/librenzan_mpi.so lib/librenzan_s3.so lib/pkgconfig/renzan.pc \
  lib/python3/dist-packages/renzan/__init__.py \
  share/doc/renzan/copyright share/doc/renzan/examples/quickstart.yaml; do
  [ -s "root/usr/$file" ] || fail "no /usr/$file"
done
[ -z "$(find root ! -user root -o -perm /022 ! -type l | head -1)" ] || [ "$(id -u)" -ne 0 ] ||
  fail "files writable by others"
grep -q '^renzan ' <<<"$(root/usr/bin/renzan --version | head -1)" || fail "does not run"
[ "${2:-}" = --chroot ] || exit 0

[ "$(id -u)" -eq 0 ] || skip "a chroot needs root"
bare=$work/bare
if [ -n "${RENZAN_BARE:-}" ]; then
  cp -a "$RENZAN_BARE" "$bare"
else
  command -v debootstrap >/dev/null || skip "no debootstrap"
  debootstrap --variant=minbase bookworm "$bare" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" \
    >debootstrap.txt || { tail "$bare/debootstrap/debootstrap.log" >&2; fail "debootstrap"; }
fi
mount -t proc proc "$bare/proc"
trap 'umount "$bare/proc"; rm -rf "$work" "$build/package"' EXIT
cp "$deb" "$bare/root/"
in_chroot() { chroot "$bare" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
in_chroot sh -c "cd /root && apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
  --no-install-recommends ./$(basename "$deb")" >apt.txt 2>&1 || { tail apt.txt; fail "apt install"; }
in_chroot renzan --version
in_chroot renzan doctor
in_chroot sh -c 'renzan data synth --format dataset --rows 4000 --output /root/d &&
  cat >/root/c.yaml <<YAML
data: {train: {path: /root/d, rows: [0, 3000]}, eval: {path: /root/d, rows: [3000, 4000]}}
model: {embedding_dim: 8, bottom_mlp: [16], top_mlp: [16, 8], cross_layers: 2, cross_rank: 4}
training: {batch_size: 256}
YAML
  renzan train /root/c.yaml --run-dir /root/run --workers 2 --backend gloo &&
  renzan cluster up && renzan submit --wait -- true && renzan cluster down' || fail "does not work"
in_chroot sh -c 'apt-get install -q -y --no-install-recommends python3-numpy && cd / &&
  python3 -c "import renzan; assert renzan.init().all_reduce([1, 2]).tolist() == [1, 2]"' >apt.txt 2>&1 ||
  { tail apt.txt; fail "its Python package does not work"; }
in_chroot apt-get remove -q -y renzan >/dev/null
[ ! -e "$bare/usr/lib/python3/dist-packages/renzan" ] || fail "its Python package was not removed"
! in_chroot renzan --version 2>/dev/null || fail "was not removed"
echo "installed on Debian $(cat "$bare/etc/debian_version")"
