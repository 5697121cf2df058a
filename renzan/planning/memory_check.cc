#include "renzan/planning/memory_check.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/comm/gather.h"

namespace renzan {
namespace {

int64_t Mib(int64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

}  // namespace

std::string WhyItDoesNotFit(std::span<const MemoryEstimate> workers,
                            std::span<const SharedMemory> memory) {
  for (const SharedMemory& shared : memory) {
    int64_t needed = 0;
    for (const int rank : shared.ranks) needed += workers[static_cast<size_t>(rank)].total();
    if (needed <= shared.bytes) continue;
    std::string text = fmt::format(
        "{} {} {} {} MiB of memory, but {} MiB are available {}:\n"
        "  worker    tables     dense   batches   program  checkpoint       sum (MiB)\n",
        shared.ranks.size() == 1 ? "worker" : "workers", fmt::join(shared.ranks, ", "),
        shared.ranks.size() == 1 ? "needs" : "need", Mib(needed), shared.bytes >> 20,
        shared.name.empty() ? "on their machine" : "in the cgroup " + shared.name);
    for (const int rank : shared.ranks) {
      const MemoryEstimate& worker = workers[static_cast<size_t>(rank)];
      text += fmt::format("  {:6} {:9} {:9} {:9} {:9} {:11} {:9}\n", rank, Mib(worker.tables),
                          Mib(worker.dense), Mib(worker.batches), Mib(worker.program),
                          Mib(worker.checkpoint), Mib(worker.total()));
    }
    return text +
           "use more machines or memory, numerics.embedding_precision: bf16, a sparse optimizer "
           "with smaller states, or a smaller batch (`renzan plan` says what would help); or set "
           "check_memory: false";
  }
  return "";
}

int64_t RoomForCopies(int rank, std::span<const MemoryEstimate> workers,
                      std::span<const SharedMemory> memory) {
  int64_t room = workers[static_cast<size_t>(rank)].more_copies;
  for (const SharedMemory& shared : memory) {
    if (std::find(shared.ranks.begin(), shared.ranks.end(), rank) == shared.ranks.end()) continue;
    int64_t left = shared.bytes / 10 * 9;  // estimates miss some memory
    for (const int other : shared.ranks) left -= workers[static_cast<size_t>(other)].total();
    room = std::min(room, left / std::ssize(shared.ranks));
  }
  return std::max<int64_t>(0, room);
}

int64_t CheckMemory(const MemoryEstimate& mine, Communicator& comm) {
  const std::vector<MemoryEstimate> workers = AllGatherValues(comm, mine);
  const std::vector<SharedMemory> memory = MemoryOfWorkers(comm);
  const std::string why = WhyItDoesNotFit(workers, memory);
  if (!why.empty()) Fail(ErrorCode::kOsError, "{}", why);
  return RoomForCopies(comm.rank(), workers, memory);
}

}  // namespace renzan
