#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/cluster/simulate/policy.h"

namespace renzan::cluster::simulate {
namespace {

class Scheduler : public SimulatedPolicy {
 public:
  explicit Scheduler(Policy policy) : policy_(std::move(policy)) {}
  PolicyOutput Decide(const PolicyInput& input) override {
    return {policy_(input.snapshot), {}, {}};
  }
  bool IsScheduler() const override { return true; }
  bool ScalesPools() const override { return true; }

 private:
  const Policy policy_;
};

}  // namespace

std::unique_ptr<SimulatedPolicy> MakeScheduler(Policy policy) {
  return std::make_unique<Scheduler>(std::move(policy));
}

const std::vector<std::string>& PolicyNames() {
  static const std::vector<std::string> names = {
      "renzan", "fifo", "backfill", "backfill-easy", "kubernetes", "las", "srpt-oracle"};
  return names;
}

std::unique_ptr<SimulatedPolicy> MakePolicy(const std::string& name, uint64_t seed,
                                            const ScheduleOptions& options) {
  if (name == "renzan")
    return MakeScheduler([options](const Snapshot& at) { return Schedule(at, options); });
  if (name == "fifo") return MakeFifo();
  if (name == "backfill") return MakeBackfill();
  if (name == "backfill-easy") return MakeEasyBackfill();
  if (name == "kubernetes") return MakeKubernetes(seed);
  if (name == "las") return MakeLeastAttainedService();
  if (name == "srpt-oracle") return MakeShortestRemainingTime();
  const std::string nearest = NearestName(name, PolicyNames());
  Fail(ErrorCode::kUsage, "there is no policy '{}'{}; choose one of {}", name,
       nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
       fmt::join(PolicyNames(), ", "));
}

}  // namespace renzan::cluster::simulate
