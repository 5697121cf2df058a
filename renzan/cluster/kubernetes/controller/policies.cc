#include "renzan/cluster/kubernetes/controller/policies.h"

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cluster/kubernetes/objects/conditions.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {

void Policies::Take(const Json& spec) {
  const std::string text = spec.dump();
  if (text == accepted_) return;
  current_ = ClusterPolicyFrom(spec);
  accepted_ = text;
  changed_ = true;
}

void Policies::Put(std::shared_ptr<const Json> object) {
  const std::string name = TextAt(*object, {"metadata", "name"});
  Known& known = known_[name];
  if (!known.status.Put(object)) return;
  if (name != kPolicyName) {
    known.wrong =
        fmt::format("only the ClusterPolicy named '{}' counts: write this into it", kPolicyName);
    return;
  }
  try {
    // Written by an earlier leader, which knew what was in force then.
    const std::string held = TextAt(*object, {"status", "holds"});
    if (accepted_.empty() && !held.empty()) Take(Json::parse(held));
  } catch (const std::exception& error) {
    LogWarning("the status of clusterpolicy {} says what held before it, but {}", name,
               error.what());
  }
  try {
    Take(At(*object, {"spec"}));
    known.wrong.clear();
  } catch (const Error& error) {
    known.wrong = error.what();
    LogWarning("clusterpolicy {}: {}", name, known.wrong);
  }
}

void Policies::Remove(const std::string& name) {
  known_.erase(name);
  if (name != kPolicyName) return;
  current_ = {};
  accepted_.clear();
  changed_ = true;
}

bool Policies::Flush(Requests& requests, TimeMs now) {
  bool all = true;
  for (auto& [name, known] : known_) {
    const int64_t generation = NumberAt(known.status.object(), {"metadata", "generation"});
    const bool holds = known.wrong.empty();
    const char* reason = holds ? "Accepted" : name == kPolicyName ? "Invalid" : "OtherName";
    Json status = {{"observedGeneration", generation},
                   {"conditions",
                    {ConditionObject({"Accepted", holds, reason, known.wrong}, generation,
                                     known.status.status(), now)}}};
    if (!holds) status["message"] = known.wrong;
    // For the next leader, whose first view may already be the invalid one.
    if (name == kPolicyName && !accepted_.empty()) status["holds"] = accepted_;
    all &= known.status.Set(ClusterPolicies(), std::move(status), requests);
  }
  return all;
}

}  // namespace renzan::cluster::kubernetes
