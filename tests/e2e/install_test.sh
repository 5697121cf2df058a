#!/usr/bin/env bash
# The files of `cmake --install` work: the program, its job system, manual pages, completions, the
# C interface and the Python package.
source "$(dirname "$0")/lib.sh"
build=$(dirname "$(dirname "$renzan")")
command -v cmake >/dev/null || skip "no cmake"
[ -e "$build/pages/stamp" ] || fail "build the target renzan_pages first"

cmake --install "$build" --prefix "$work/root" >install.txt || { cat install.txt; fail "install"; }
for file in bin/renzan lib/librenzan_jobs.so libexec/renzan/renzan-supervisor share/man/man1/renzan.1 \
  share/man/man1/renzan-data-import.1 share/bash-completion/completions/renzan \
  share/zsh/site-functions/_renzan include/renzan.h \
  lib/librenzan.so.0 lib/librenzan_mpi.so lib/librenzan_s3.so lib/pkgconfig/renzan.pc \
  lib/python3/dist-packages/renzan/__init__.py share/doc/renzan/README.md share/doc/renzan/LICENSE \
  share/doc/renzan/docs/cluster.md share/doc/renzan/examples/quickstart.yaml; do
  [ -s "root/$file" ] || fail "no $file"
done

# After moving the tree, the program still finds its supervisor and runs a job.
mv root elsewhere
renzan=$work/elsewhere/bin/renzan
grep -q "$work/elsewhere/libexec/renzan/renzan-supervisor" <<<"$("$renzan" doctor --json)" || fail "no supervisor"
export RENZAN_STATE_DIR=$work/state
"$renzan" cluster up >up.txt
"$renzan" submit --wait -- true || fail "a job of the installed program: exit $?"
"$renzan" cluster down
mv elsewhere/libexec elsewhere/gone
expect_exit 66 "libexec/renzan/renzan-supervisor" "$renzan" cluster up
mv elsewhere/lib/librenzan_jobs.so elsewhere/gone
expect_exit 66 "elsewhere/lib/librenzan_jobs.so" "$renzan" cluster up

# Programs in C and Python.
export PKG_CONFIG_PATH=$work/elsewhere/lib/pkgconfig LD_LIBRARY_PATH=$work/elsewhere/lib
unset RENZAN_LIBRARY
if command -v pkg-config >/dev/null && command -v cc >/dev/null; then
  cat >program.c <<'C'
#include <renzan.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  renzan_place place;
  renzan_comm* comm = NULL;
  float one[3] = {1, 2, 3}, sum[3] = {0, 0, 0};
  if (renzan_place_from_environment(&place) != RENZAN_OK ||
      renzan_comm_create(&place, "local", 10, 1, &comm) != RENZAN_OK ||
      renzan_all_reduce(comm, one, sum, 3, RENZAN_FLOAT32, RENZAN_SUM) != RENZAN_OK) {
    fprintf(stderr, "%s\n", renzan_last_error());
    return 1;
  }
  renzan_comm_destroy(comm);
  printf("%s %d\n", renzan_version(), memcmp(one, sum, sizeof one));
  return 0;
}
C
  # shellcheck disable=SC2046
  cc -std=c99 -Wall -Wextra -Wpedantic -Werror program.c -o program \
    $(pkg-config --cflags --libs renzan) || fail "a program in C does not compile"
  [ "$(./program)" = "$(pkg-config --modversion renzan) 0" ] || fail "a program in C: $(./program)"
else
  echo "no pkg-config or no C compiler: no program in C was compiled"
fi
if python3 -c "import numpy" 2>/dev/null; then
  [ "$(PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$work/elsewhere/lib/python3/dist-packages python3 -c '
import renzan
print(renzan.init().all_reduce([1, 2]).tolist())')" = "[1, 2]" ] || fail "a program in Python"
else
  echo "no NumPy: no program in Python was run"
fi
