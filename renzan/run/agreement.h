#pragma once

// Checks that all workers run the same thing. Each worker reads its own files on its own machine;
// if those differed, replicas would silently diverge. Every rank makes the same calls.

#include <map>
#include <string>

#include "renzan/comm/communicator.h"
#include "renzan/config/train_config.h"
#include "renzan/state/model_state.h"

namespace renzan {

// Throws kConfig, naming the worker, unless every worker's `value` equals worker 0's. `what` says
// what the value is, `advice` what to do.
void CheckWorkersAgree(Communicator& comm, const std::string& what, const std::string& value,
                       const std::string& advice);

// What determines a model's bits besides its configuration and data.
struct ProgramFacts {
  std::string build;                             // version and build id: "0.1.0-3f9a0c51d2be"
  std::string isa;                               // from SelectIsa()
  std::map<std::string, std::string> libraries;  // name -> version
};

// `build_id`: BuildId().
ProgramFacts FactsOfThisProgram(const std::string& build_id, const std::string& isa);

// The same for a worker of a run: selects the instruction set that the configuration asks for. With
// device: cuda, `isa` is the class of the worker's GPU.
ProgramFacts FactsOfWorker(const std::string& build_id, const TrainConfig& config,
                           const Communicator& comm);

// Throws kConfig when there are more workers than virtual workers, or when workers differ in build,
// instruction set class, library version or configuration (the message names the first key that
// differs). Keys that decide only the placement may differ (Decides::kPlacement in
// config/decides.h).
void CheckSameRun(Communicator& comm, const TrainConfig& config, const ProgramFacts& facts);

// Throws kConfig unless all replicas of the dense parameters and their optimizer states are equal.
// Every worker draws the initial values itself, with C library functions whose results may depend
// on the CPU model.
void CheckSameDenseParameters(Communicator& comm, ModelState& model);

}  // namespace renzan
