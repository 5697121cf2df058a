#include "renzan/run/agreement.h"

#include <optional>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/xxhash.h"
#include "renzan/comm/gather.h"
#include "renzan/config/config_difference.h"
#include "renzan/cuda/load.h"
#include "renzan/nn/isa.h"
#include "renzan/step/device_engine.h"

namespace renzan {
namespace {

void CheckSameConfig(Communicator& comm, TrainConfig config) {
  const std::string mine = PrintConfig([&](ConfigFields& fields) { config.Describe(fields); });
  const std::vector<std::string> all = GatherStrings(comm, mine);
  const auto config_of = [&](size_t rank) {
    TrainConfig read;
    ReadConfigText(all[rank], fmt::format("worker {}", rank), {},
                   [&](ConfigFields& fields) { read.Describe(fields); });
    return read;
  };
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const std::optional<ConfigDifference> difference =
        FirstDifference(config_of(rank), config_of(0), WorkersMustAgree);
    if (difference)
      Fail(ErrorCode::kConfig,
           "worker {} has a different configuration than worker 0: {} is {}, not {}; give every "
           "worker the same file and the same --set",
           rank, difference->key, difference->there, difference->here);
  }
}

}  // namespace

void CheckWorkersAgree(Communicator& comm, const std::string& what, const std::string& value,
                       const std::string& advice) {
  const std::vector<std::string> values = GatherStrings(comm, value);
  for (size_t rank = 1; rank < values.size(); ++rank)
    if (values[rank] != values[0])
      Fail(ErrorCode::kConfig, "worker {} has a different {} than worker 0 ({} vs {}): {}", rank,
           what, values[rank], values[0], advice);
}

ProgramFacts FactsOfThisProgram(const std::string& build_id, const std::string& isa) {
  return {.build = fmt::format("{}-{}", RENZAN_VERSION, build_id),
          .isa = isa,
          .libraries = {{"libc", MathLibraryVersion()}}};
}

ProgramFacts FactsOfWorker(const std::string& build_id, const TrainConfig& config,
                           const Communicator& comm) {
  ProgramFacts facts =
      FactsOfThisProgram(build_id, SelectIsa(config.numerics.isa, PrecisionOf(config.numerics)));
  if (config.device != "cuda") return facts;
  const DeviceFacts device = FactsOfDevice(DeviceOf(comm));
  facts.isa = device.gpu_class;
  facts.libraries["cuBLASLt"] = device.products;
  return facts;
}

void CheckSameRun(Communicator& comm, const TrainConfig& config, const ProgramFacts& facts) {
  if (comm.world_size() > config.numerics.virtual_workers)
    Fail(ErrorCode::kConfig, "workers {}",
         TooManyWorkers(comm.world_size(), config.numerics.virtual_workers));
  // First, because a different build may make different exchanges after this.
  CheckWorkersAgree(comm, "build", facts.build, "install the same version on every host");
  CheckWorkersAgree(comm, "device", config.device,
                    "give every worker the same file and the same --set");
  for (const auto& [name, version] : facts.libraries)
    CheckWorkersAgree(comm, "version of " + name, version,
                      "install the same version on every host");
  // Instruction sets that give the same bits as worker 0's count as the same.
  const std::string first_isa = BroadcastString(comm, facts.isa);
  CheckWorkersAgree(
      comm, "instruction set",
      HasSameBits(facts.isa, first_isa, PrecisionOf(config.numerics)) ? first_isa : facts.isa,
      IsGpuClass(facts.isa) ? "use GPUs of one class" : "pin one with numerics.isa");
  CheckSameConfig(comm, config);
  // Workers may stage in different directories, but all go through a checkpoint's phases together:
  // either all stage, or none does.
  CheckWorkersAgree(comm, "checkpoint.stage",
                    config.checkpoint.stage.empty() ? "none" : "a directory",
                    "name a directory of each host, or none on any");
}

void CheckSameDenseParameters(Communicator& comm, ModelState& model) {
  Xxh128 hash;
  hash.Update(model.parameters().data(), model.parameters().size() * sizeof(float));
  for (DenseOptimizer::State& state : model.dense_optimizer().states())
    hash.Update(state.values.data(), state.values.size() * sizeof(float));
  CheckWorkersAgree(comm, "set of initial dense parameters", hash.HexDigest().substr(0, 12),
                    "use one CPU model for all workers, or start them from one checkpoint");
}

}  // namespace renzan
