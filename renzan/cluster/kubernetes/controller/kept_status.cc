#include "renzan/cluster/kubernetes/controller/kept_status.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/log.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {

bool KeptStatus::Put(std::shared_ptr<const Json> object) {
  if (own_versions_.erase(TextAt(*object, {"metadata", "resourceVersion"})) > 0) return false;
  object_ = std::move(object);
  written_.reset();
  return true;
}

const Json& KeptStatus::status() const { return At(*object_, {"status"}); }

bool KeptStatus::Set(const Kind& kind, Json status, Requests& requests) {
  return SetStatuses(kind, {{this, std::move(status)}}, requests);
}

bool KeptStatus::Holds(const Json& wanted) const {
  return status() == wanted || (written_ && *written_ == wanted);
}

void KeptStatus::Written(Json wanted, Json answer) {
  own_versions_.insert(TextAt(answer, {"metadata", "resourceVersion"}));
  object_ = std::make_shared<const Json>(std::move(answer));
  written_ = std::make_shared<const Json>(std::move(wanted));
}

bool SetStatuses(const Kind& kind, std::vector<std::pair<KeptStatus*, Json>> statuses,
                 Requests& requests) {
  struct Write : Task {
    KeptStatus* of;
    Json body, answer;
  };
  std::vector<Write> writes;
  for (auto& [of, status] : statuses) {
    if (of->Holds(status)) continue;
    Write& write = writes.emplace_back();
    write.of = of;
    write.body = of->object();
    write.body["status"] = std::move(status);
  }
  RunAll(requests, writes, [&](Api& api, Write& write) {
    write.answer =
        api.Replace(kind, TextAt(write.body, {"metadata", "namespace"}), write.body, "status");
  });
  bool written = true;
  for (Write& write : writes) {
    if (!write.error) {
      write.of->Written(std::move(write.body["status"]), std::move(write.answer));
      continue;
    }
    // A watch will report the other write.
    if (!write.error->is_conflict()) LogWarning("{}", write.error->what());
    written &= write.error->is_conflict() || write.error->is_not_found();
  }
  return written;
}

}  // namespace renzan::cluster::kubernetes
