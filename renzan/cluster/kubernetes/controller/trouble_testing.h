#pragma once

// A cluster where everything goes wrong for a while, for a property test: see trouble_test.cc.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/cluster/kubernetes/controller/world_testing.h"

namespace renzan::cluster::kubernetes {

// What may happen in a run. Each seed draws some of it, so that most runs also have some peace.
struct TroubleKinds {
  bool lost_answers = false;     // also of requests that arrive later
  bool watches_expire = false;   // 410
  bool conflict_storms = false;  // somebody writes to all GangJobs all the time
  bool server_ends = false;      // the server and all watches end for a while
  bool wrong_clocks = false;     // of replicas; they are set, too
  bool leaders_killed = false;   // at any request
  bool two_leaders = false;  // each believes that it leads, and works between the other's requests
  bool machines = false;     // die, are cut off, cordoned, drained, announced to leave, removed
  // they die, are cut off, cordoned, drained, announced to leave, removed
  bool pods_deleted = false;
  bool edits = false;            // of sizes, priorities, templates; requests by annotations
  bool names_reused = false;     // a job is deleted, and another one created with its name
  bool kubelets_refuse = false;  // also because pods of others take the room
  std::string Text() const;
};

class Trouble {
 public:
  explicit Trouble(uint64_t seed);

  // This many turns of trouble.
  void Suffer(int turns);
  // Everything works again. True: all jobs have ended within this many turns.
  bool Recover(int turns);
  // What should not have happened; one line each.
  std::vector<std::string> Wrong() const;

  const TroubleKinds kinds;
  World world;

 private:
  uint32_t Draw(uint32_t below) { return Philox::Draw(seed_, draws_++, 3)[0] % below; }
  bool OneIn(uint32_t n) { return Draw(n) == 0; }
  void Step(bool trouble);
  // Lets a replica work. False: it has ended.
  bool Work(Replica& replica, bool trouble);
  void StartLeader();
  void Meanwhile(const Replica& replica);
  void UsersAct();
  void MachinesAct();
  void NetworkActs();
  void Submit(const std::string& name);
  std::string SomeJob();
  std::string SomeNode() { return "n" + std::to_string(Draw(static_cast<uint32_t>(nodes_))); }
  void Mend(const std::string& node);

  const uint64_t seed_;
  uint64_t draws_ = 0;
  int nodes_ = 0;
  std::map<std::string, bool> given_up_;                 // by job: whether it has been given up
  std::map<std::string, std::function<void()>> broken_;  // by node: how to repair it
  std::set<std::string> others_;                         // pods
  std::unique_ptr<Replica> deposed_;
  std::set<const Replica*> at_work_, ended_;
  int told_ = 0;
};

}  // namespace renzan::cluster::kubernetes
