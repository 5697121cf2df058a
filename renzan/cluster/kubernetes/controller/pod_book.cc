#include "renzan/cluster/kubernetes/controller/pod_book.h"

#include <utility>

namespace renzan::cluster::kubernetes {

void PodBook::Put(Pod pod) {
  unshown_.erase(pod.uid);
  doubtful_.erase(pod.uid);
  Store(std::move(pod));
}

void PodBook::PutAnswer(Pod pod) {
  if (!pods_.contains(pod.uid)) unshown_.insert(pod.uid);
  Store(std::move(pod));
}

std::vector<Pod> PodBook::TakeDoubtful() {
  std::vector<Pod> doubtful;
  for (const std::string& uid : std::exchange(doubtful_, {})) doubtful.push_back(pods_.at(uid));
  return doubtful;
}

void PodBook::Store(Pod pod) {
  if (const auto old = pods_.find(pod.uid); old != pods_.end()) {
    // A watch may show an older version than we know: a pod that has been bound stays bound.
    if (pod.node.empty()) pod.node = old->second.node;
    // What it was granted at first decides.
    if (pod.deleting && old->second.deleting) pod.ended_by_itself = false;
    pod.ended_by_itself |= old->second.ended_by_itself;
    Unindex(old->second);
  }
  Touch(pod);
  if (!pod.job_uid.empty()) by_job_[pod.job_uid].insert(pod.uid);
  if (!pod.node.empty()) by_node_[pod.node].insert(pod.uid);
  const std::string uid = pod.uid;
  pods_.insert_or_assign(uid, std::move(pod));
}

void PodBook::Remove(const std::string& uid) {
  const auto at = pods_.find(uid);
  if (at == pods_.end()) return;
  Unindex(at->second);
  unshown_.erase(uid);
  doubtful_.erase(uid);
  if (!at->second.job_uid.empty()) removed_[at->second.job_uid].push_back(std::move(at->second));
  pods_.erase(at);
}

void PodBook::Bound(const std::string& uid, const std::string& node) {
  const auto at = pods_.find(uid);
  if (at == pods_.end() || !at->second.node.empty()) return;
  Pod pod = at->second;
  pod.node = node;
  Store(std::move(pod));
}

std::vector<const Pod*> PodBook::OfJob(const std::string& job_uid) const {
  std::vector<const Pod*> found;
  if (const auto at = by_job_.find(job_uid); at != by_job_.end())
    for (const std::string& uid : at->second) found.push_back(&pods_.at(uid));
  return found;
}

std::vector<Pod> PodBook::TakeRemoved(const std::string& job_uid) {
  const auto at = removed_.find(job_uid);
  if (at == removed_.end()) return {};
  std::vector<Pod> removed = std::move(at->second);
  removed_.erase(at);
  return removed;
}

void PodBook::TouchNodesOf(const std::string& job_uid) {
  for (const Pod* pod : OfJob(job_uid))
    if (!pod->node.empty()) changed_nodes_.insert(pod->node);
}

std::vector<const Pod*> PodBook::OnNode(const std::string& node) const {
  std::vector<const Pod*> found;
  if (const auto at = by_node_.find(node); at != by_node_.end())
    for (const std::string& uid : at->second)
      if (const Pod& pod = pods_.at(uid); !pod.ended) found.push_back(&pod);
  return found;
}

void PodBook::Touch(const Pod& pod) {
  if (!pod.job_uid.empty()) changed_jobs_.insert(pod.job_uid);
  if (!pod.node.empty()) changed_nodes_.insert(pod.node);
}

void PodBook::Unindex(const Pod& pod) {
  Touch(pod);
  const auto erase = [&](auto& index, const std::string& key) {
    const auto at = index.find(key);
    if (at == index.end()) return;
    at->second.erase(pod.uid);
    if (at->second.empty()) index.erase(at);
  };
  erase(by_job_, pod.job_uid);
  erase(by_node_, pod.node);
}

}  // namespace renzan::cluster::kubernetes
