#pragma once

#include "renzan/comm/communicator.h"
#include "renzan/config/train_config.h"
#include "renzan/infer/rank_items.h"
#include "renzan/run/splits.h"

namespace renzan {

// What training.ranking ranks at each evaluation: the items of data.train and data.eval, which it
// reads. Throws what ItemRanking does. Every worker calls it; `splits` must outlive the result.
ItemRanking ItemsToRank(const TrainConfig& config, const OpenedSplits& splits, Communicator& comm);

}  // namespace renzan
