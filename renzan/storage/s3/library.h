#pragma once

// The functions of librenzan_s3.so, the client of object stores as a library of its own: programs
// that only use this machine's files need not compile it, and librenzan.so needs no libcurl. It
// must be of the build of the program that loads it (base/plugin.h).

#include "renzan/base/log.h"
#include "renzan/storage/storage.h"

extern "C" {
const char* renzan_s3_build();  // BuildId(). The only one that any build may call.
// OpenS3() with this process's environment; the caller owns the result. `log`: through what it
// logs; null: as a program of its own would. `throw_failed_checks`: ThrowFailedChecks().
renzan::Storage* renzan_s3_open(const renzan::LogFunctions* log, bool throw_failed_checks);
}
