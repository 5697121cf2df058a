#include "renzan/cluster/spec/worker_shapes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/cluster/spec/amounts.h"

namespace renzan::cluster::spec {
namespace {

bool Holds(const JobSpec::PerWorker& shape, const JobSpec::PerWorker& wanted) {
  return wanted.cpu <= shape.cpu && wanted.gpu <= shape.gpu &&
         ParseMebibytes(wanted.memory) <= ParseMebibytes(shape.memory) &&
         std::all_of(wanted.other.begin(), wanted.other.end(), [&](const auto& each) {
           const auto at = shape.other.find(each.first);
           return each.second == 0 || (at != shape.other.end() && each.second <= at->second);
         });
}

auto SizeOf(const JobSpec::PerWorker& shape) {
  return std::tuple(shape.gpu, ParseMebibytes(shape.memory), shape.cpu, shape.other);
}

std::string Describe(const JobSpec::PerWorker& shape) {
  std::string text = fmt::format("cpu: {}, memory: {}, gpu: {}", shape.cpu,
                                 MebibytesText(ParseMebibytes(shape.memory)), shape.gpu);
  for (const auto& [name, count] : shape.other) text += fmt::format(", {}: {}", name, count);
  return text;
}

}  // namespace

void RoundUpToShape(const WorkerShapes& offered, const std::string& source, JobSpec& spec) {
  const JobSpec::PerWorker* best = nullptr;
  std::vector<std::string> menu;
  for (const auto& [name, shape] : offered) {
    menu.push_back(fmt::format("{} ({})", name, Describe(shape)));
    if (Holds(shape, spec.resources) && (!best || SizeOf(shape) < SizeOf(*best))) best = &shape;
  }
  if (offered.empty()) return;
  if (!best)
    Fail(ErrorCode::kConfig,
         "{}: its workers ({}) are larger than any that this cluster offers: {}; ask for less, or "
         "the operator for another shape",
         source, Describe(spec.resources), fmt::join(menu, ", "));
  spec.resources = *best;
}

}  // namespace renzan::cluster::spec
