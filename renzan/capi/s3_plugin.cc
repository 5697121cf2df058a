// librenzan_s3.so.

#include "renzan/base/build_id.h"
#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/capi/plugin.h"
#include "renzan/storage/s3/s3_storage.h"

extern "C" __attribute__((visibility("default"))) renzan::Storage* renzan_open_object_store() {
  renzan::ThrowFailedChecks();
  return renzan::s3::OpenS3(renzan::s3::ProcessEnvironment(), renzan::SystemClock(), {}).release();
}

extern "C" __attribute__((visibility("default"))) const char* renzan_plugin_build() {
  return renzan::BuildId();
}
