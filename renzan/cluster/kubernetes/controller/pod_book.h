#pragma once

// All pods that the controller knows of, by job and by node. The controller's own writes are kept
// until a watch shows them. For one thread.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/kubernetes/objects/pod.h"

namespace renzan::cluster::kubernetes {

class PodBook {
 public:
  // Puts a pod as the watch showed it.
  void Put(Pod pod);
  // Puts a pod as the server answered: the watch may show it later.
  void PutAnswer(Pod pod);
  void Remove(const std::string& uid);
  // Records a binding that we have written successfully.
  void Bound(const std::string& uid, const std::string& node);

  const std::map<std::string, Pod>& pods() const { return pods_; }
  std::vector<const Pod*> OfJob(const std::string& job_uid) const;
  // Pods of the job that were removed since the last call, in their last known state: a pod may end
  // and be removed before anyone looks.
  std::vector<Pod> TakeRemoved(const std::string& job_uid);
  // Returns a removed pod to the book, to be shown again.
  void PutBack(const Pod& removed) { removed_[removed.job_uid].push_back(removed); }
  // Pods that run there, or are about to.
  std::vector<const Pod*> OnNode(const std::string& node) const;

  // The watch has listed all pods again, and will not report the deletion of a pod that it has
  // never shown.
  void Relisted() { doubtful_ = unshown_; }
  // Pods that had not been shown before such a list, since the last call: they may be gone.
  std::vector<Pod> TakeDoubtful();
  void Doubt(const std::string& uid) { doubtful_.insert(uid); }

  // The jobs and nodes of pods that changed since the last call.
  std::set<std::string> TakeChangedJobs() { return std::exchange(changed_jobs_, {}); }
  void TouchNodesOf(const std::string& job_uid);
  std::set<std::string> TakeChangedNodes() { return std::exchange(changed_nodes_, {}); }

 private:
  void Touch(const Pod& pod);
  void Unindex(const Pod& pod);
  void Store(Pod pod);

  std::map<std::string, Pod> pods_;  // by uid
  std::map<std::string, std::set<std::string>> by_job_, by_node_;
  std::map<std::string, std::vector<Pod>> removed_;  // by job
  std::set<std::string> unshown_, doubtful_;         // uids
  std::set<std::string> changed_jobs_, changed_nodes_;
};

}  // namespace renzan::cluster::kubernetes
