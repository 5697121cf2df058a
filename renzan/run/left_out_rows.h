#pragma once

// The rows of an epoch that no step trains on: a batch has a fixed size, so those that do not fill
// a last one are left out.

#include <cstdint>
#include <string>

#include "renzan/config/train_config.h"

namespace renzan {

// Of `rows` rows. 0 for a run that is shorter than an epoch, which leaves out rows anyway.
int64_t LeftOutRows(const TrainConfig& config, int64_t rows, int64_t steps);

// What a run leaves out, and which batch size would leave out fewest; "" if that is less than a
// hundredth of the rows.
std::string LeftOutAdvice(const TrainConfig& config, int64_t rows, int64_t steps);

// Throws kConfig, with a batch size that works, if the rows do not fill one batch.
void CheckFillsBatch(const TrainConfig& config, int64_t rows);

}  // namespace renzan
