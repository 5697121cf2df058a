#include "renzan/infer/group_auc.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "renzan/base/escape.h"
#include "renzan/comm/gather.h"
#include "renzan/comm/heartbeat.h"

namespace renzan {
namespace {

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

void CheckGroupsHaveScores(std::span<const EvaluatedOutput> outputs, const GroupRequest& request) {
  if (std::any_of(outputs.begin(), outputs.end(), HasGroups)) return;
  Fail(request.code,
       "{} groups are measured for labels of 0 and 1, but the model predicts '{}' as a number: "
       "write "
       "its predictions beside the group with predict --with",
       request.key, Escape(outputs.front().label));
}

GroupAucs MergeGroups(Communicator& comm, GroupedMetrics mine, std::optional<int64_t> unseen) {
  const int64_t rows = std::ssize(mine.samples());
  int64_t unseen_rows = 0;
  if (unseen)
    unseen_rows = std::count_if(mine.samples().begin(), mine.samples().end(),
                                [&](const GroupedSample& sample) {
                                  return sample.group() == static_cast<uint64_t>(*unseen);
                                });
  if (comm.world_size() > 1)
    mine.samples() = ExchangeGroups(comm, std::exchange(mine.samples(), {}));
  GroupAucs own;
  RunWithHeartbeats(comm, [&] { own = mine.Aucs(); });
  own.rows = rows;
  own.unseen_rows = unseen_rows;
  if (comm.world_size() == 1) return own;
  struct Part {
    GroupAucMean once, weighted;
    int64_t rows, unseen_rows;
  };
  const Part part = {own.once, own.weighted.value_or(GroupAucMean()), rows, unseen_rows};
  GroupAucs sum;
  if (own.weighted) sum.weighted.emplace();
  for (const Part& its : AllGatherValues(comm, part)) {
    sum.once.Merge(its.once);
    if (sum.weighted) sum.weighted->Merge(its.weighted);
    sum.rows += its.rows;
    sum.unseen_rows += its.unseen_rows;
  }
  return sum;
}

}  // namespace renzan
