#include "renzan/cluster/kubernetes/process/counted_api.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

namespace renzan::cluster::kubernetes {
namespace {

const std::vector<double> kRequestBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                            0.1,   0.25,   0.5,   1,    2.5,   10};

class CountedApi : public Api {
 public:
  CountedApi(std::unique_ptr<Api> api, ApiCounts& counts, const Clock& clock)
      : api_(std::move(api)), counts_(counts), clock_(clock) {}

  Json Get(const Kind& kind, const std::string& ns, const std::string& name,
           const std::string& subresource) override {
    return Counted("get", [&] { return api_->Get(kind, ns, name, subresource); });
  }
  Json List(const Kind& kind, const std::string& ns, const Selector& selector) override {
    return Counted("list", [&] { return api_->List(kind, ns, selector); });
  }
  void Watch(const Kind& kind, const std::string& ns, const Selector& selector,
             const std::string& resource_version,
             const std::function<void(std::string_view, Json&&)>& take) override {
    Counted("watch", [&] { api_->Watch(kind, ns, selector, resource_version, take); });
  }
  Json Create(const Kind& kind, const std::string& ns, const Json& object) override {
    return Counted("create", [&] { return api_->Create(kind, ns, object); });
  }
  Json Replace(const Kind& kind, const std::string& ns, const Json& object,
               const std::string& subresource) override {
    return Counted("update", [&] { return api_->Replace(kind, ns, object, subresource); });
  }
  Json MergePatch(const Kind& kind, const std::string& ns, const std::string& name,
                  const Json& patch, const std::string& subresource) override {
    return Counted("patch", [&] { return api_->MergePatch(kind, ns, name, patch, subresource); });
  }
  void Delete(const Kind& kind, const std::string& ns, const std::string& name,
              const std::string& uid, std::optional<int64_t> grace_seconds) override {
    Counted("delete", [&] { api_->Delete(kind, ns, name, uid, grace_seconds); });
  }
  void Bind(const std::string& ns, const std::string& pod, const std::string& uid,
            const std::string& node) override {
    Counted("bind", [&] { api_->Bind(ns, pod, uid, node); });
  }

 private:
  template <typename Request>
  std::invoke_result_t<const Request&> Counted(const char* verb, const Request& request) {
    const double begun = clock_.MonotonicSeconds();
    const auto count = [&](const std::string& code) {
      counts_.Count(verb, code, clock_.MonotonicSeconds() - begun);
    };
    try {
      if constexpr (std::is_void_v<decltype(request())>) {
        request();
        count("2xx");
      } else {
        auto answer = request();
        count("2xx");
        return answer;
      }
    } catch (const ApiError& error) {
      // A request that was never sent does not count.
      if (!error.is_stopped())
        count(error.no_answer() ? "none" : std::to_string(error.http_status()));
      throw;
    }
  }

  const std::unique_ptr<Api> api_;
  ApiCounts& counts_;
  const Clock& clock_;
};

}  // namespace

void ApiCounts::Count(const char* verb, const std::string& code, double seconds) {
  const std::lock_guard lock(mutex_);
  ++values_.requests[{verb, code}];
  if (std::string_view(verb) != "watch")
    values_.seconds.try_emplace(verb, kRequestBounds).first->second.Observe(seconds);
}

ApiCounts::Values ApiCounts::values() const {
  const std::lock_guard lock(mutex_);
  return values_;
}

ApiFactory MakeCountedApis(ApiFactory make_api, ApiCounts& counts, const Clock& clock) {
  return [make_api = std::move(make_api), &counts, &clock](std::stop_token stop) {
    return std::make_unique<CountedApi>(make_api(std::move(stop)), counts, clock);
  };
}

}  // namespace renzan::cluster::kubernetes
