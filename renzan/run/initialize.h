#pragma once

// Starting a new run from the model of another: training.initialize_from. The run has its own steps
// and schedule; what it starts with is a function of that model, this run's data and its seed.

#include <cstdint>
#include <map>
#include <string>

#include "renzan/checkpoint/manifest.h"
#include "renzan/comm/communicator.h"
#include "renzan/config/train_config.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/state/model_state.h"

namespace renzan {

// Identifies what a run starts from, whatever it is called: its model_sha256, or its manifest's if
// it is a checkpoint without one.
std::string IdentityOf(const CheckpointManifest& manifest);

// For rank 0, before anything is written: whether a run with this configuration and training data
// can start from that model: from all of it, or with training.initialize_partly from what both
// have. `run_dir`: where an earlier attempt may have recorded what it started from. Throws
// kNoInput, kIo or kData for a model that cannot be read, kConfig for one with other features or
// shapes, or another than before. Reads no parameters. Nothing to do without
// training.initialize_from.
void CheckInitialModel(const TrainConfig& config, const Dataset& dataset,
                       const std::string& run_dir, Communicator& comm);

// Loads it after CheckInitialModel, and says on rank 0 what is taken. Every rank calls it. Returns
// what the run's checkpoints record of it, with which these answer.
std::map<std::string, std::string> Initialize(const TrainConfig& config, const Dataset& dataset,
                                              ModelState* state, Communicator& comm);

// What a checkpoint of a run that started from a model records of that; empty for other runs.
// `recorded`: CheckpointManifest::run.
std::map<std::string, std::string> StartOf(const std::map<std::string, std::string>& recorded);
std::string InitializedFrom(const std::map<std::string, std::string>& recorded);
// DenseOptimizer::earlier_steps
int64_t EarlierSteps(const std::map<std::string, std::string>& recorded);
// ShardedEmbeddings::earlier_steps
int64_t EarlierSparseSteps(const std::map<std::string, std::string>& recorded);

}  // namespace renzan
