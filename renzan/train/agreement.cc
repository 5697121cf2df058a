#include "renzan/train/agreement.h"

#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/sha256.h"
#include "renzan/nn/isa.h"
#include "renzan/train/gather.h"

namespace renzan {

void CheckWorkersAgree(Communicator& comm, const std::string& what, const std::string& value,
                       const std::string& advice) {
  const std::vector<std::string> values = GatherStrings(comm, value);
  for (size_t rank = 1; rank < values.size(); ++rank)
    if (values[rank] != values[0])
      Fail(ErrorCode::kConfig, "worker {} has another {} than worker 0 ({} and {}): {}", rank, what,
           values[rank], values[0], advice);
}

void CheckSameRun(Communicator& comm, const TrainConfig& config, const std::string& isa) {
  if (comm.world_size() > config.numerics.virtual_workers)
    Fail(ErrorCode::kConfig, "workers {}",
         TooManyWorkers(comm.world_size(), config.numerics.virtual_workers));
  CheckWorkersAgree(comm, "program version", RENZAN_VERSION, "install the same on every host");
  CheckWorkersAgree(comm, "version of oneDNN", MatmulLibraryVersion(),
                    "install the same on every host");
  CheckWorkersAgree(comm, "instruction set", isa, "pin one with numerics.isa");
  TrainConfig same = config;
  same.run_dir = "";
  same.checkpoint.dir = "";
  same.workers = 0;
  same.threads = 0;
  const std::string text = PrintConfig([&](ConfigFields& fields) { same.Describe(fields); });
  CheckWorkersAgree(comm, "configuration", Sha256Hex(text).substr(0, 12),
                    "give every worker the same file and the same --set");
}

}  // namespace renzan
