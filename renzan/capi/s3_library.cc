// Object stores for librenzan.so: loads librenzan_s3.so beside it, which needs the system's
// libcurl, when a path in a store is first used.

#include "renzan/capi/plugin.h"
#include "renzan/storage/s3/library.h"
#include "renzan/storage/storage.h"

namespace renzan::capi {
namespace {

std::unique_ptr<Storage> Open() {
  static const auto open = reinterpret_cast<decltype(&renzan_s3_open)>(
      LoadFromPlugin({.file = "librenzan_s3.so",
                      .build = "renzan_s3_build",
                      .code = ErrorCode::kUnavailable,
                      .what = "the client of object stores (s3://)",
                      .advice = "install libcurl (Debian: libcurl4), and both libraries from the "
                                "same build"},
                     "renzan_s3_open"));
  return std::unique_ptr<Storage>(open(nullptr, /*throw_failed_checks=*/true));
}

// When librenzan.so is loaded, before anybody can call it.
[[maybe_unused]] const bool is_set = (SetObjectStore(Open), true);

}  // namespace
}  // namespace renzan::capi
