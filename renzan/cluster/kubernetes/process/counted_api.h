#pragma once

// An Api whose requests are counted.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "renzan/base/clock.h"
#include "renzan/cluster/kubernetes/api/api.h"
#include "renzan/cluster/kubernetes/controller/histogram.h"

namespace renzan::cluster::kubernetes {

// Thread-safe.
class ApiCounts {
 public:
  struct Values {
    // By verb (get, list, watch, create, update, patch, delete, bind) and result: "2xx", the status
    // of a refusal, or "none" for no answer. A watch counts when it ends.
    std::map<std::pair<std::string, std::string>, int64_t> requests;
    // By verb; without watches, which last until something ends them.
    std::map<std::string, Histogram> seconds;
  };

  void Count(const char* verb, const std::string& code, double seconds);
  Values values() const;

 private:
  mutable std::mutex mutex_;
  Values values_;
};

// `counts` must outlive everything that the result makes.
ApiFactory MakeCountedApis(ApiFactory make_api, ApiCounts& counts, const Clock& clock);

}  // namespace renzan::cluster::kubernetes
