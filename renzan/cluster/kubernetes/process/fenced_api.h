#pragma once

// An Api whose writes fail once this process may no longer write.

#include <functional>
#include <memory>

#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {

// `may_write` is called before each write; if it returns false, the write fails with is_stopped()
// and is not sent.
std::unique_ptr<Api> MakeFencedApi(std::unique_ptr<Api> api, std::function<bool()> may_write);
ApiFactory MakeFencedApis(ApiFactory make_api, std::function<bool()> may_write);

}  // namespace renzan::cluster::kubernetes
