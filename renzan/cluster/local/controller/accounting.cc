#include "renzan/cluster/local/controller/accounting.h"

#include <algorithm>
#include <functional>

#include "renzan/cluster/core/order/queue_tree.h"

namespace renzan::cluster::local {
namespace {

// Lends among these queues, and takes that out of what they need and have.
void Lend(const std::function<bool(size_t)>& is_one, std::vector<double>& over,
          std::vector<double>& idle, std::vector<Loan>& loans) {
  double all_over = 0, all_idle = 0;
  for (size_t queue = 0; queue < over.size(); ++queue) {
    if (!is_one(queue)) continue;
    all_over += over[queue];
    all_idle += idle[queue];
  }
  if (all_over == 0 || all_idle == 0) return;
  const double lent = std::min(all_over, all_idle);
  for (size_t lender = 0; lender < idle.size(); ++lender)
    for (size_t borrower = 0; borrower < over.size(); ++borrower)
      if (is_one(lender) && is_one(borrower) && idle[lender] > 0 && over[borrower] > 0)
        loans.push_back({static_cast<int>(lender), static_cast<int>(borrower),
                         lent * (idle[lender] / all_idle) * (over[borrower] / all_over)});
  for (size_t queue = 0; queue < over.size(); ++queue) {
    if (!is_one(queue)) continue;
    over[queue] *= (all_over - lent) / all_over;
    idle[queue] *= (all_idle - lent) / all_idle;
  }
}

// What the parent is guaranteed beyond its queues belongs to all of them: it is taken out of what
// they need, which is no loan. Returns the rest.
double UseSurplus(const Snapshot& snapshot, int parent, const std::function<bool(size_t)>& is_its,
                  std::vector<double>& over) {
  double surplus = static_cast<double>(snapshot.queues[parent].guaranteed.gpu()), all_over = 0;
  for (size_t queue = 0; queue < over.size(); ++queue) {
    if (!is_its(queue)) continue;
    if (snapshot.queues[queue].parent == parent)
      surplus -= static_cast<double>(snapshot.queues[queue].guaranteed.gpu());
    all_over += over[queue];
  }
  const double used = std::clamp(all_over, 0.0, std::max(0.0, surplus));
  for (size_t queue = 0; queue < over.size(); ++queue)
    if (is_its(queue) && used > 0) over[queue] *= (all_over - used) / all_over;
  return std::max(0.0, surplus) - used;
}

}  // namespace

int64_t GpusOf(const Snapshot& snapshot, const Job& job) {
  return snapshot.worker_requests[job.request].per_worker.gpu() * NumWorkers(job.placement);
}

std::vector<Loan> LoansNow(const Snapshot& snapshot) {
  const size_t queues = snapshot.queues.size();
  std::vector<double> over(queues), idle(queues);
  for (const Job& job : snapshot.jobs)
    if (!job.quota_exempt) over[job.queue] += static_cast<double>(GpusOf(snapshot, job));
  for (size_t queue = 0; queue < queues; ++queue) {
    const double beyond =
        over[queue] - static_cast<double>(snapshot.queues[queue].guaranteed.gpu());
    over[queue] = std::max(0.0, beyond);
    idle[queue] = std::max(0.0, -beyond);
  }
  std::vector<Loan> loans;
  // Within the nearest parent first, then within that one's.
  for (const int parent : ParentsUpwards(snapshot)) {
    const auto is_its = [&](size_t queue) {
      return static_cast<int>(queue) != parent &&
             IsWithin(snapshot, static_cast<int>(queue), parent);
    };
    idle[parent] = UseSurplus(snapshot, parent, is_its, over);
    Lend(is_its, over, idle, loans);
  }
  Lend([](size_t) { return true; }, over, idle, loans);
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
  return std::any_of(snapshot.jobs.begin(), snapshot.jobs.end(),
                     [&](const Job& job) { return IsOn(job.placement, node); });
}

}  // namespace renzan::cluster::local
