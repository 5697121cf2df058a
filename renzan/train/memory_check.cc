#include "renzan/train/memory_check.h"

#include <algorithm>
#include <limits>

#include "renzan/base/error.h"
#include "renzan/base/memory_budget.h"
#include "renzan/train/gather.h"
#include "renzan/train/topology.h"

namespace renzan {
namespace {

int64_t Mib(int64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

}  // namespace

std::string WhyItDoesNotFit(const std::vector<MemoryEstimate>& workers, const Topology& topology,
                            const std::vector<MemoryRoom>& rooms) {
  for (const IndexRange host : topology.hosts) {
    int64_t needed = 0;
    MemoryRoom room{.bytes = std::numeric_limits<int64_t>::max()};
    for (int rank = host.begin; rank < host.end; ++rank) {
      needed += workers[static_cast<size_t>(rank)].total();
      const MemoryRoom& mine = rooms[static_cast<size_t>(rank)];
      if (mine.bytes < room.bytes) room = mine;
    }
    if (needed <= room.bytes) continue;
    std::string text = fmt::format(
        "worker{} {} need{} {} MiB of memory, but {} MiB are available{}:\n"
        "  worker    tables     dense   batches   program       sum (MiB)\n",
        host.size() == 1 ? "" : "s",
        host.size() == 1 ? std::to_string(host.begin)
                         : fmt::format("{} to {}", host.begin, host.end - 1),
        host.size() == 1 ? "s" : "", Mib(needed), room.bytes >> 20,
        room.cgroup.empty() ? " on their host" : " in the cgroup " + room.cgroup);
    for (int rank = host.begin; rank < host.end; ++rank) {
      const MemoryEstimate& worker = workers[static_cast<size_t>(rank)];
      text += fmt::format("  {:6} {:9} {:9} {:9} {:9} {:9}\n", rank, Mib(worker.tables),
                          Mib(worker.dense), Mib(worker.batches), Mib(worker.program),
                          Mib(worker.total()));
    }
    return text +
           "use more hosts or memory, numerics.embedding_precision: bf16, a sparse optimizer with "
           "smaller states, or a smaller batch; `renzan plan` says what would help";
  }
  return "";
}

void CheckMemory(const std::vector<MemoryEstimate>& workers, Communicator& comm) {
  const MemoryBudget budget = ReadMemoryBudget();
  const std::vector<int64_t> bytes = AllGatherValues(comm, budget.room);
  const std::vector<std::string> cgroups = GatherStrings(comm, budget.room_cgroup);
  std::vector<MemoryRoom> rooms;
  for (size_t r = 0; r < bytes.size(); ++r) rooms.push_back({bytes[r], cgroups[r]});
  const std::string why = WhyItDoesNotFit(workers, TopologyOf(comm), rooms);
  if (!why.empty()) Fail(ErrorCode::kOsError, "{}", why);
}

}  // namespace renzan
