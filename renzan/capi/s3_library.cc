// Object stores for librenzan.so: loads librenzan_s3.so beside it, which needs the system's
// libcurl, when a path in a store is first used.

#include "renzan/capi/plugin.h"
#include "renzan/storage/storage.h"

namespace renzan::capi {
namespace {

using OpenStore = Storage* (*)();

std::unique_ptr<Storage> Open() {
  static const auto open = reinterpret_cast<OpenStore>(
      LoadFromPlugin("librenzan_s3.so", "renzan_open_object_store", "object stores (s3://)",
                     "install libcurl (Debian: libcurl4)"));
  return std::unique_ptr<Storage>(open());
}

// When librenzan.so is loaded, before anybody can call it.
[[maybe_unused]] const bool is_set = (SetObjectStore(Open), true);

}  // namespace
}  // namespace renzan::capi
