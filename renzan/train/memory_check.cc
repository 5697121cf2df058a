#include "renzan/train/memory_check.h"

#include "renzan/base/error.h"
#include "renzan/train/gather.h"

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
        "worker{} {} need{} {} MiB of memory, but {} MiB are available {}:\n"
        "  worker    tables     dense   batches   program       sum (MiB)\n",
        shared.ranks.size() == 1 ? "" : "s", fmt::join(shared.ranks, ", "),
        shared.ranks.size() == 1 ? "s" : "", Mib(needed), shared.bytes >> 20,
        shared.name.empty() ? "on their machine" : "in the cgroup " + shared.name);
    for (const int rank : shared.ranks) {
      const MemoryEstimate& worker = workers[static_cast<size_t>(rank)];
      text += fmt::format("  {:6} {:9} {:9} {:9} {:9} {:9}\n", rank, Mib(worker.tables),
                          Mib(worker.dense), Mib(worker.batches), Mib(worker.program),
                          Mib(worker.total()));
    }
    return text +
           "use more machines or memory, numerics.embedding_precision: bf16, a sparse optimizer "
           "with smaller states, or a smaller batch (`renzan plan` says what would help); or set "
           "check_memory: false";
  }
  return "";
}

void CheckMemory(const MemoryEstimate& mine, Communicator& comm) {
  const std::vector<MemoryEstimate> workers = AllGatherValues(comm, mine);
  const std::string why = WhyItDoesNotFit(workers, MemoryOfWorkers(comm));
  if (!why.empty()) Fail(ErrorCode::kOsError, "{}", why);
}

}  // namespace renzan
