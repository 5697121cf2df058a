#include "renzan/storage/s3/library.h"

#include "renzan/base/build_id.h"
#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/storage/s3/s3_storage.h"

extern "C" {

__attribute__((visibility("default"))) const char* renzan_s3_build() { return renzan::BuildId(); }

__attribute__((visibility("default"))) renzan::Storage* renzan_s3_open(
    const renzan::LogFunctions* log, bool throw_failed_checks) {
  if (log != nullptr) renzan::LogThrough(*log);
  if (throw_failed_checks) renzan::ThrowFailedChecks();
  return renzan::s3::OpenS3(renzan::s3::ProcessEnvironment(), renzan::SystemClock(), {}).release();
}

}  // extern "C"
