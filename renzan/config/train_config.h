#pragma once

// The configuration of a training run: one struct per section of the YAML file, in a file of its
// own, each field with its default and with what it decides (decides.h).

#include <cstdint>
#include <string>

#include "renzan/config/checkpoint_config.h"
#include "renzan/config/comm_config.h"
#include "renzan/config/data_config.h"
#include "renzan/config/elastic_config.h"
#include "renzan/config/features_config.h"
#include "renzan/config/model_config.h"
#include "renzan/config/numerics_config.h"
#include "renzan/config/optimizer_config.h"
#include "renzan/config/sharding_config.h"
#include "renzan/config/training_config.h"

namespace renzan {

struct TrainConfig {
  uint64_t seed = 0;
  std::string device = "cpu";
  DataConfig data;
  FeaturesConfig features;
  ModelConfig model;
  TrainingConfig training;
  OptimizerConfig optimizer;
  NumericsConfig numerics;
  ShardingConfig sharding;
  CommConfig comm;
  CheckpointConfig checkpoint;
  ElasticConfig elastic;
  int workers = 0;  // 0: see NumWorkers
  int threads = 0;  // per worker; 0: share the CPUs available to this process
  bool check_memory = true;
  std::string run_dir;

  void Describe(ConfigFields& fields);
};

// The number of workers to start on a machine with `cores` cores: `workers` if set, else as many as
// `elastic` and the cores allow, else one.
int NumWorkers(const TrainConfig& config, int cores);

// "= 9 is more than the 8 virtual workers: use ...", to follow the word "workers".
std::string TooManyWorkers(int workers, int virtual_workers);

}  // namespace renzan
