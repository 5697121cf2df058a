#include "renzan/infer/group_auc.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/base/escape.h"
#include "renzan/comm/gather.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/data/dataset/manifest.h"

namespace renzan {
namespace {

// Why rows cannot be grouped by a column of this name.
std::string WhyNotGroupedBy(const std::string& name, const Dataset& dataset,
                            const std::vector<std::string>& candidates) {
  const DatasetSchema& schema = dataset.schema();
  const auto is_in = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const CategoricalFeature& feature : schema.categorical)
    if (feature.name == name) return "a row may have several ids of this feature";
  for (const DenseVector& vector : schema.vectors)
    if (vector.name == name) return "this is a vector of dense features";
  if (is_in(schema.dense)) return "this is a dense feature";
  if (is_in(schema.label_names())) return "this is a label";
  if (name == schema.weight) return "this is the weight";
  if (is_in(dataset.manifest().keys)) return "this is a key, and no feature";
  const std::string nearest = NearestName(name, candidates);
  return fmt::format("{} has no such column{}", dataset.directory(),
                     nearest.empty() ? "" : " (did you mean '" + nearest + "'?)");
}

// Neighbouring ids are on different workers, and so are ids at any distance.
size_t WorkerOf(uint64_t group, size_t workers) {
  return static_cast<size_t>((group * 0x9e3779b97f4a7c15) >> 32) % workers;
}

// Every worker's samples of this worker's groups.
std::vector<GroupedSample> ExchangeGroups(Communicator& comm, std::vector<GroupedSample> mine) {
  const size_t workers = static_cast<size_t>(comm.world_size());
  const size_t self = static_cast<size_t>(comm.rank());
  RunWithHeartbeats(comm, [&] {
    std::sort(mine.begin(), mine.end(), [&](const GroupedSample& a, const GroupedSample& b) {
      return WorkerOf(a.group(), workers) < WorkerOf(b.group(), workers);
    });
  });
  std::vector<int64_t> counts(workers);
  for (const GroupedSample& sample : mine) ++counts[WorkerOf(sample.group(), workers)];
  std::vector<std::vector<int64_t>> all(workers, std::vector<int64_t>(workers));
  std::vector<std::span<std::byte>> parts;
  for (std::vector<int64_t>& part : all) parts.push_back(std::as_writable_bytes(std::span(part)));
  comm.AllGatherV(std::as_bytes(std::span(counts)), parts);
  size_t received = 0;
  for (const std::vector<int64_t>& of_rank : all) received += static_cast<size_t>(of_rank[self]);
  std::vector<GroupedSample> samples(received);
  std::vector<std::span<const std::byte>> send;
  std::vector<std::span<std::byte>> receive;
  size_t sent = 0, got = 0;
  for (size_t rank = 0; rank < workers; ++rank) {
    const size_t to = static_cast<size_t>(counts[rank]),
                 from = static_cast<size_t>(all[rank][self]);
    send.push_back(std::as_bytes(std::span(mine).subspan(sent, to)));
    receive.push_back(std::as_writable_bytes(std::span(samples).subspan(got, from)));
    sent += to;
    got += from;
  }
  comm.AllToAllV(send, receive);
  return samples;
}

}  // namespace

size_t FindGroupFeature(const std::string& name, const Dataset& dataset,
                        const GroupRequest& request) {
  std::vector<std::string> candidates;
  const std::vector<CategoricalFeature>& features = dataset.schema().categorical;
  for (size_t t = 0; t < features.size(); ++t) {
    if (features[t].multi_hot) continue;
    if (features[t].name == name) return t;
    candidates.push_back(features[t].name);
  }
  const std::string why = WhyNotGroupedBy(name, dataset, candidates);
  if (candidates.empty())
    Fail(request.code, "{} {}: {}, and {} has no one-hot feature", request.key, name, why,
         dataset.directory());
  Fail(request.code, "{} {}: {}; choose a one-hot feature: {}", request.key, name, why,
       fmt::join(candidates, ", "));
}

void CheckGroupsHaveScores(std::span<const EvaluatedOutput> outputs, const GroupRequest& request) {
  if (std::any_of(outputs.begin(), outputs.end(), HasGroups)) return;
  Fail(request.code,
       "{} groups are measured for labels of 0 and 1, but the model predicts '{}' as a number: "
       "write "
       "its predictions beside the group with predict --with",
       request.key, Escape(outputs.front().label));
}

GroupAucs MergeGroups(Communicator& comm, GroupedMetrics mine) {
  if (comm.world_size() == 1) return mine.Aucs();
  mine.samples() = ExchangeGroups(comm, std::exchange(mine.samples(), {}));
  GroupAucs own;
  RunWithHeartbeats(comm, [&] { own = mine.Aucs(); });
  const std::array<GroupAucMean, 2> means = {own.once, own.weighted.value_or(GroupAucMean())};
  GroupAucs sum;
  if (own.weighted) sum.weighted.emplace();
  for (const auto& [once, weighted] : AllGatherValues(comm, means)) {
    sum.once.Merge(once);
    if (sum.weighted) sum.weighted->Merge(weighted);
  }
  return sum;
}

}  // namespace renzan
