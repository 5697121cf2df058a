#pragma once

// Who uses how much, and whose. Pure functions of the snapshot.

#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::local {

// GPUs that one queue's jobs have and that are another's by guarantee.
struct Loan {
  int lender, borrower;  // in Snapshot::queues
  double gpus;
};

// What is guaranteed to a queue and idle is lent to those that have more than is guaranteed to
// them, in proportion on both sides. What belongs to no queue is lent by nobody.
std::vector<Loan> LoansNow(const Snapshot& snapshot);

int64_t GpusOf(const Snapshot& snapshot, const Job& job);

// By price of the nodes it stands on: of each, the largest share that it has of any kind.
double PricePerHour(const Snapshot& snapshot, const Job& job);

// What its workers take of each node.
Resources UsedOn(const Snapshot& snapshot, int node);

// Whether workers are on the node.
bool InUse(const Snapshot& snapshot, int node);

}  // namespace renzan::cluster::local
