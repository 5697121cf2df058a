#pragma once

// For tests: a store with sample records.

#include <string>
#include <vector>

#include "renzan/base/file/file.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

// A running job with values in all fields.
JobRecord SampleJob(JobId id);
AttemptRecord SampleAttempt(JobId job);

// Puts jobs 1 to `jobs`, with an attempt, events, usage and measured times each, and one record of
// every other kind.
void FillStore(Store& store, JobId jobs);
void ExpectFilledStore(Store& store, JobId jobs);

// Sample job `id`, ended at 100 * id.
JobRecord EndedJob(JobId id, RecordState state);
// Puts it, and its attempt.
void EndJob(Store& store, JobId id, RecordState state);

// Copies of corrupt databases, without their write-ahead logs.
std::vector<std::string> CopiesIn(const TemporaryDirectory& directory);

}  // namespace renzan::cluster::local
