#include "renzan/cluster/spec/worker_classes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/cluster/spec/amounts.h"

namespace renzan::cluster::spec {
namespace {

bool Holds(const JobSpec::PerWorker& worker_class, const JobSpec::PerWorker& wanted) {
  return wanted.cpu <= worker_class.cpu && wanted.gpu <= worker_class.gpu &&
         ParseMebibytes(wanted.memory) <= ParseMebibytes(worker_class.memory) &&
         std::all_of(wanted.other.begin(), wanted.other.end(), [&](const auto& each) {
           const auto at = worker_class.other.find(each.first);
           return each.second == 0 || (at != worker_class.other.end() && each.second <= at->second);
         });
}

auto SizeOf(const JobSpec::PerWorker& worker_class) {
  return std::tuple(worker_class.gpu, ParseMebibytes(worker_class.memory), worker_class.cpu,
                    worker_class.other);
}

std::string Describe(const JobSpec::PerWorker& worker_class) {
  std::string text =
      fmt::format("cpu: {}, memory: {}, gpu: {}", worker_class.cpu,
                  MebibytesText(ParseMebibytes(worker_class.memory)), worker_class.gpu);
  for (const auto& [name, count] : worker_class.other) text += fmt::format(", {}: {}", name, count);
  return text;
}

}  // namespace

void RoundUpToClass(const WorkerClasses& offered, const std::string& source, JobSpec& spec) {
  const JobSpec::PerWorker* best = nullptr;
  std::vector<std::string> classes;
  for (const auto& [name, worker_class] : offered) {
    classes.push_back(fmt::format("{} ({})", name, Describe(worker_class)));
    if (Holds(worker_class, spec.resources) && (!best || SizeOf(worker_class) < SizeOf(*best)))
      best = &worker_class;
  }
  if (offered.empty()) return;
  if (!best)
    Fail(ErrorCode::kConfig,
         "{}: its workers ({}) are larger than any worker class of this cluster: {}; request less, "
         "or ask the operator for a larger worker class",
         source, Describe(spec.resources), fmt::join(classes, ", "));
  spec.resources = *best;
}

}  // namespace renzan::cluster::spec
