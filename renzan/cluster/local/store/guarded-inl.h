#pragma once

// Internal to the store: what its .cc files share.

#include "renzan/cluster/local/store/sqlite.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

template <typename F>
auto Store::Guarded(F&& use) {
  try {
    return use();
  } catch (const CorruptDatabase& error) {
    FailCorrupt(error.what());
  }
}

}  // namespace renzan::cluster::local
