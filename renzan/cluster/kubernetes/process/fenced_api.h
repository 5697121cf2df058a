#pragma once

// An Api whose writes fail once this process must not write any more.

#include <functional>
#include <memory>

#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {

// `may_write` is asked before each write; if it says no, the write fails with is_stopped(), unsent.
std::unique_ptr<Api> MakeFencedApi(std::unique_ptr<Api> api, std::function<bool()> may_write);
ApiFactory MakeFencedApis(ApiFactory make_api, std::function<bool()> may_write);

}  // namespace renzan::cluster::kubernetes
