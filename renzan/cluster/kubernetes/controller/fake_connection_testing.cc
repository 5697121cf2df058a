#include "renzan/cluster/kubernetes/controller/fake_connection_testing.h"

#include <type_traits>

namespace renzan::cluster::kubernetes {
namespace {

[[noreturn]] void LoseAnswer() { throw ApiError(0, "", "no answer", true); }

}  // namespace

void FakeConnection::Begin() {
  if (requests_left && (*requests_left)-- <= 0) throw Killed();
  if (meanwhile) meanwhile();
  if (network_.is_down) throw ApiError(0, "", "nobody is reached", false);
}

template <typename Execute>
auto FakeConnection::Send(Execute execute) {
  Begin();
  const bool is_answered = Draw(1'000'000) >= network_.no_answer * 1e6;
  const uint32_t fate = is_answered ? 0 : Draw(3);
  if (fate == 2)
    cluster_.Later(Draw(static_cast<uint32_t>(network_.latest_ms)),
                   [execute, this_cluster = &cluster_] { execute(*this_cluster); });
  if (fate != 0) LoseAnswer();
  if constexpr (std::is_void_v<decltype(execute(cluster_))>) {
    execute(cluster_);
    if (!is_answered) LoseAnswer();
  } else {
    auto result = execute(cluster_);
    if (!is_answered) LoseAnswer();
    return result;
  }
}

Json FakeConnection::Get(const Kind& kind, const std::string& ns, const std::string& name,
                         const std::string& subresource) {
  return Send([=](FakeCluster& cluster) { return cluster.Get(kind, ns, name, subresource); });
}

Json FakeConnection::List(const Kind& kind, const std::string& ns, const Selector& selector) {
  return Send([=](FakeCluster& cluster) { return cluster.List(kind, ns, selector); });
}

Json FakeConnection::Create(const Kind& kind, const std::string& ns, const Json& object) {
  return Send([=](FakeCluster& cluster) { return cluster.Create(kind, ns, object); });
}

Json FakeConnection::Replace(const Kind& kind, const std::string& ns, const Json& object,
                             const std::string& subresource) {
  return Send([=](FakeCluster& cluster) { return cluster.Replace(kind, ns, object, subresource); });
}

Json FakeConnection::MergePatch(const Kind& kind, const std::string& ns, const std::string& name,
                                const Json& patch, const std::string& subresource) {
  return Send(
      [=](FakeCluster& cluster) { return cluster.MergePatch(kind, ns, name, patch, subresource); });
}

void FakeConnection::Delete(const Kind& kind, const std::string& ns, const std::string& name,
                            const std::string& uid, std::optional<int64_t> grace_seconds) {
  Send([=](FakeCluster& cluster) { cluster.Delete(kind, ns, name, uid, grace_seconds); });
}

void FakeConnection::Bind(const std::string& ns, const std::string& pod, const std::string& uid,
                          const std::string& node) {
  Send([=](FakeCluster& cluster) { cluster.Bind(ns, pod, uid, node); });
}

void FakeConnection::Watch(const Kind& kind, const std::string& ns, const Selector& selector,
                           const std::string& resource_version,
                           const std::function<void(std::string_view, Json&&)>& take) {
  Begin();
  cluster_.Watch(kind, ns, selector, resource_version, take);
}

}  // namespace renzan::cluster::kubernetes
