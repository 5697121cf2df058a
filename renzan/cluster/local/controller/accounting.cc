#include "renzan/cluster/local/controller/accounting.h"

#include <algorithm>

namespace renzan::cluster::local {

int64_t GpusOf(const Snapshot& snapshot, const Job& job) {
  return snapshot.worker_requests[job.request].per_worker.gpu() * NumWorkers(job.placement);
}

std::vector<Loan> LoansNow(const Snapshot& snapshot) {
  std::vector<double> over(snapshot.queues.size()), idle(snapshot.queues.size());
  for (const Job& job : snapshot.jobs)
    over[job.queue] += static_cast<double>(GpusOf(snapshot, job));
  double all_over = 0, all_idle = 0;
  for (size_t queue = 0; queue < over.size(); ++queue) {
    const double beyond =
        over[queue] - static_cast<double>(snapshot.queues[queue].guaranteed.gpu());
    over[queue] = std::max(0.0, beyond);
    idle[queue] = std::max(0.0, -beyond);
    all_over += over[queue];
    all_idle += idle[queue];
  }
  std::vector<Loan> loans;
  if (all_over == 0 || all_idle == 0) return loans;
  const double lent = std::min(all_over, all_idle);
  for (size_t lender = 0; lender < idle.size(); ++lender)
    for (size_t borrower = 0; borrower < over.size(); ++borrower)
      if (idle[lender] > 0 && over[borrower] > 0)
        loans.push_back({static_cast<int>(lender), static_cast<int>(borrower),
                         lent * (idle[lender] / all_idle) * (over[borrower] / all_over)});
  return loans;
}

double PricePerHour(const Snapshot& snapshot, const Job& job) {
  double price = 0;
  for (const Placed& placed : job.placement) {
    const Node& node = snapshot.nodes[placed.node];
    if (node.pool < 0) continue;
    const Resources taken = snapshot.worker_requests[job.request].per_worker * placed.workers;
    double share = 0;
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (node.capacity[kind] > 0)
        share = std::max(
            share, static_cast<double>(taken[kind]) / static_cast<double>(node.capacity[kind]));
    price += share * snapshot.pools[node.pool].price_per_hour;
  }
  return price;
}

bool InUse(const Snapshot& snapshot, int node) {
  for (const Job& job : snapshot.jobs)
    for (const Placed& placed : job.placement)
      if (placed.node == node) return true;
  return false;
}

}  // namespace renzan::cluster::local
