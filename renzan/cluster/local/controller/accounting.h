#pragma once

// How much jobs use, and which queues lend it to them. Pure functions of the snapshot.

#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::local {

// GPUs from one queue's guaranteed quota that another queue's jobs use.
struct Loan {
  int lender, borrower;  // in Snapshot::queues
  double gpus;
};

// Idle guaranteed quota is lent to the queues that use more than their own, in proportion to what
// each has idle and to what each uses beyond its own; among the queues of one parent first. GPUs
// that are guaranteed to no queue are not lent.
std::vector<Loan> LoansNow(const Snapshot& snapshot);

int64_t GpusOf(const Snapshot& snapshot, const Job& job);

// For each node, the job pays for the largest share that it has of any kind of resource.
double PricePerHour(const Snapshot& snapshot, const Job& job);

// Whether workers are on the node.
bool InUse(const Snapshot& snapshot, int node);

}  // namespace renzan::cluster::local
