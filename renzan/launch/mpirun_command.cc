#include "renzan/launch/mpirun_command.h"

#include <fmt/format.h>

namespace renzan {

std::vector<std::string> MpirunCommand(int workers, bool shared_cpus, const std::string& program,
                                       const std::vector<std::string>& arguments) {
  // Shared memory only, without probing networks.
  std::vector<std::string> words = {
      "mpirun", "--oversubscribe", "--bind-to", "none",      "--mca", "pml",
      "ob1",    "--mca",           "btl",       "self,vader"};
  if (shared_cpus) words.insert(words.end(), {"--mca", "mpi_yield_when_idle", "1"});
  // Colons separate the parts of the command line; mpirun numbers the workers in the order of the
  // parts.
  for (int rank = 0; rank < workers; ++rank) {
    if (rank > 0) words.emplace_back(":");
    words.insert(words.end(), {"-n", "1", "-x", fmt::format("RANK={}", rank), "-x",
                               fmt::format("LOCAL_RANK={}", rank), program});
    words.insert(words.end(), arguments.begin(), arguments.end());
  }
  return words;
}

}  // namespace renzan
