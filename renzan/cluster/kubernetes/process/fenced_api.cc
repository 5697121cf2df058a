#include "renzan/cluster/kubernetes/process/fenced_api.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/cluster/kubernetes/objects/kinds.h"

namespace renzan::cluster::kubernetes {
namespace {

class FencedApi : public Api {
 public:
  FencedApi(std::unique_ptr<Api> api, std::function<bool()> may_write)
      : api_(std::move(api)), may_write_(std::move(may_write)) {}

  Json Get(const Kind& kind, const std::string& ns, const std::string& name,
           const std::string& subresource) override {
    return api_->Get(kind, ns, name, subresource);
  }
  Json List(const Kind& kind, const std::string& ns, const Selector& selector) override {
    return api_->List(kind, ns, selector);
  }
  void Watch(const Kind& kind, const std::string& ns, const Selector& selector,
             const std::string& resource_version,
             const std::function<void(std::string_view, Json&&)>& take) override {
    api_->Watch(kind, ns, selector, resource_version, take);
  }

  Json Create(const Kind& kind, const std::string& ns, const Json& object) override {
    Check(kind);
    return api_->Create(kind, ns, object);
  }
  Json Replace(const Kind& kind, const std::string& ns, const Json& object,
               const std::string& subresource) override {
    Check(kind);
    return api_->Replace(kind, ns, object, subresource);
  }
  Json MergePatch(const Kind& kind, const std::string& ns, const std::string& name,
                  const Json& patch, const std::string& subresource) override {
    Check(kind);
    return api_->MergePatch(kind, ns, name, patch, subresource);
  }
  void Delete(const Kind& kind, const std::string& ns, const std::string& name,
              const std::string& uid, std::optional<int64_t> grace_seconds) override {
    Check(kind);
    api_->Delete(kind, ns, name, uid, grace_seconds);
  }
  void Bind(const std::string& ns, const std::string& pod, const std::string& uid,
            const std::string& node) override {
    Check(Pods());
    api_->Bind(ns, pod, uid, node);
  }

 private:
  void Check(const Kind& kind) const {
    if (may_write_()) return;
    throw ApiError(0, "Stopped",
                   fmt::format("not writing this {}: another replica may lead by now", kind.name),
                   /*maybe_executed=*/false);
  }

  const std::unique_ptr<Api> api_;
  const std::function<bool()> may_write_;
};

}  // namespace

std::unique_ptr<Api> MakeFencedApi(std::unique_ptr<Api> api, std::function<bool()> may_write) {
  return std::make_unique<FencedApi>(std::move(api), std::move(may_write));
}

ApiFactory MakeFencedApis(ApiFactory make_api, std::function<bool()> may_write) {
  return [make_api = std::move(make_api), may_write = std::move(may_write)](std::stop_token stop) {
    return MakeFencedApi(make_api(std::move(stop)), may_write);
  };
}

}  // namespace renzan::cluster::kubernetes
