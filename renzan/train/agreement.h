#pragma once

// What all workers must have in common. Each worker reads its own files on its own machine; where
// they differ, replicas would drift apart silently. Every rank makes the same calls.

#include <map>
#include <string>

#include "renzan/comm/communicator.h"
#include "renzan/train/config.h"
#include "renzan/train/hybrid_model.h"

namespace renzan {

// Throws kConfig naming the worker whose `value` is not worker 0's. `what` names the thing,
// `advice` what to do.
void CheckWorkersAgree(Communicator& comm, const std::string& what, const std::string& value,
                       const std::string& advice);

// What decides a model's bits beside its configuration and data.
struct ProgramFacts {
  std::string build;                             // version and build id: "0.1.0-3f9a0c51d2be"
  std::string isa;                               // as SelectIsa() chose it
  std::map<std::string, std::string> libraries;  // name -> version
};

// Of this process. `build_id` is BuildId()'s.
ProgramFacts FactsOfThisProgram(const std::string& build_id, const std::string& isa);

// More workers than virtual workers, another build, instruction set class or library version, or
// another configuration beyond where and how fast it runs (the message names its first key that
// differs): kConfig.
void CheckSameRun(Communicator& comm, const TrainConfig& config, const ProgramFacts& facts);

// Replicas of the dense part, with the states of its optimizer, that are not equal: kConfig. They
// are drawn by every worker on its own, with functions of the C library that may differ from one
// kind of processor to another.
void CheckSameDenseParameters(Communicator& comm, HybridModel& model);

}  // namespace renzan
