#pragma once

// Runs the health check of each node, a command of the configuration: before the node takes its
// first job, regularly, and at once after a job has failed there soon after its start. While it has
// not passed, nothing starts on the node. For one thread.

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/local/agent.h"
#include "renzan/cluster/local/controller/cluster_state.h"
#include "renzan/cluster/local/controller/node_manager.h"

namespace renzan::cluster::local {

class NodeChecker {
 public:
  struct Options {
    std::vector<std::string> command;  // empty: no checks
    TimeMs interval_ms = 300'000, timeout_ms = 30'000;
    std::string log_dir;  // gets a file for each node
  };
  NodeChecker(Options options, ClusterState& state, NodeManager& nodes, Agent& agent,
              const Clock& clock)
      : options_(std::move(options)), state_(state), nodes_(nodes), agent_(agent), clock_(clock) {}

  // Starts checks that are due, takes the results of those that have ended, and closes and reopens
  // nodes. Returns those that it has reopened.
  std::vector<int> Advance();
  // A job has failed there soon after its start.
  void JobFailedOn(const std::string& node);
  // Why the node stays closed if it is restored; "": it has passed its check, or there are none.
  std::string WhyNot(int node) const;
  // When to call Advance() at the latest.
  TimeMs NextEvent() const;
  void ClockWentBack(TimeMs now);

 private:
  struct Check {
    std::string why_not = "its health check has not passed yet";  // empty: it has passed
    TimeMs due = 0;
    pid_t child = 0;  // 0: none runs
    // It began before a job failed there, so that it cannot show that the node works since then.
    bool outdated = false;
    TimeMs deadline = 0;
  };

  void Start(int node, Check& check);
  void TakeResult(int node, Check& check);
  void Ended(int node, Check& check, const std::string& why_not);
  void Stop(int node, Check& check);
  void ReapKilled();
  std::string LogOf(int node) const;

  const Options options_;
  ClusterState& state_;
  NodeManager& nodes_;
  Agent& agent_;
  const Clock& clock_;
  std::map<int, Check> checks_;  // of nodes that are there
  int running_ = 0;
  // By node: children that have not ended yet. They may hang in a driver, where SIGKILL does not
  // end them; until they have ended, no other check of their node starts.
  std::map<int, pid_t> killed_;
};

}  // namespace renzan::cluster::local
