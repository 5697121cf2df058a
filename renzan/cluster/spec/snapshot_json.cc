#include "renzan/cluster/spec/snapshot_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "renzan/base/error.h"
#include "renzan/cluster/spec/check_indices.h"

namespace renzan::cluster::spec {
namespace {

using Json = nlohmann::ordered_json;

// An int64_t whose maximum means "none" and is null in JSON.
struct NullAtMax {
  int64_t& value;
};

// A double whose infinity is null in JSON.
struct NullAtInfinity {
  double& value;
};

template <typename State>
struct Word {
  State state;
  const char* word;
};

constexpr Word<NodeState> kNodeStates[] = {{NodeState::kReady, "ready"},
                                           {NodeState::kBooting, "booting"},
                                           {NodeState::kDraining, "draining"},
                                           {NodeState::kGone, "gone"},
                                           {NodeState::kCordoned, "cordoned"}};
constexpr Word<JobState> kJobStates[] = {{JobState::kPending, "pending"},
                                         {JobState::kRunning, "running"},
                                         {JobState::kStopping, "stopping"},
                                         {JobState::kResizing, "resizing"}};
constexpr const auto& WordsOf(NodeState) { return kNodeStates; }
constexpr const auto& WordsOf(JobState) { return kJobStates; }

// Both directions. Describe(io, value) below calls io(key, field) for every field of a struct.
class Writer;
class Reader;

template <typename Io>
void Describe(Io& io, Node& node) {
  io("name", node.name);
  io("pool", node.pool);
  io("capacity", node.capacity);
  io("labels", node.labels);
  io("state", node.state);
  io("until", NullAtMax{node.until});
  io("idle_since", node.idle_since);
  io("spot", node.spot);
}

template <typename Io>
void Describe(Io& io, Pool& pool) {
  io("name", pool.name);
  io("capacity", pool.capacity);
  io("labels", pool.labels);
  io("domains", pool.domains);
  io("spot", pool.spot);
  io("min_nodes", pool.min_nodes);
  io("max_nodes", pool.max_nodes);
  io("price_per_hour", pool.price_per_hour);
  io("boot_ms", pool.boot_ms);
  io("idle_ms", pool.idle_ms);
  io("interruptions_per_hour", pool.interruptions_per_hour);
  io("boot_ahead", pool.boot_ahead);
  io("expected_nodes", pool.expected_nodes);
}

template <typename Io>
void Describe(Io& io, Queue& queue) {
  io("name", queue.name);
  io("guaranteed", queue.guaranteed);
  io("limit", queue.limit);
  io("removed", queue.removed);
}

template <typename Io>
void Describe(Io& io, QuotaOverride& quota_override) {
  io("max_gpus", NullAtMax{quota_override.max_gpus});
  io("until", NullAtMax{quota_override.until});
}

template <typename Io>
void Describe(Io& io, User& user) {
  io("name", user.name);
  io("max_gpus", NullAtMax{user.max_gpus});
  io("quota_overrides", user.quota_overrides);
}

template <typename Io>
void Describe(Io& io, WorkerRequest& request) {
  io("per_worker", request.per_worker);
  io("required", request.required);
  io("preferred", request.preferred);
  io("topology_level", request.topology_level);
  io("topology_required", request.topology_required);
}

template <typename Io>
void Describe(Io& io, Placed& placed) {
  io("node", placed.node);
  io("workers", placed.workers);
}

template <typename Io>
void Describe(Io& io, Reservation& reservation) {
  io("job", reservation.job);
  io("placement", reservation.placement);
}

template <typename Io>
void Describe(Io& io, Job& job) {
  io("id", job.id);
  io("request", job.request);
  io("queue", job.queue);
  io("user", job.user);
  io("priority", job.priority);
  io("min_workers", job.min_workers);
  io("max_workers", job.max_workers);
  io("checkpoints", job.checkpoints);
  io("preemptible", job.preemptible);
  io("grand_challenge", job.grand_challenge);
  io("submitted", job.submitted);
  io("grace_ms", job.grace_ms);
  io("max_checkpoint_interval_ms", job.max_checkpoint_interval_ms);
  io("state", job.state);
  io("eligible_at", NullAtMax{job.eligible_at});
  io("held", job.held);
  io("placement", job.placement);
  io("target", job.target);
  io("started", job.started);
  io("last_resize", job.last_resize);
  io("last_checkpoint", job.last_checkpoint);
  io("stopping_for", job.stopping_for);
  io("backfilled", job.backfilled);
  io("waiting_since", job.waiting_since);
  io("attained_worker_ms", job.attained_worker_ms);
  io("restart_cost_ms", job.restart_cost_ms);
  io("checkpoint_cost_ms", job.checkpoint_cost_ms);
  io("state_bytes", job.state_bytes);
  io("run_time", job.run_time);
  io("expected_end", job.expected_end);
  io("preemptions", job.preemptions);
  io("reservation_yields", job.reservation_yields);
}

template <typename Io>
void Describe(Io& io, Snapshot& snapshot) {
  io("now", snapshot.now);
  io("resource_names", snapshot.resource_names);
  io("topology_levels", snapshot.topology_levels);
  io("nodes", snapshot.nodes);
  io("pools", snapshot.pools);
  io("queues", snapshot.queues);
  io("users", snapshot.users);
  io("worker_requests", snapshot.worker_requests);
  io("jobs", snapshot.jobs);
  io("reservations", snapshot.reservations);
  io("budget_per_hour", NullAtInfinity{snapshot.budget_per_hour});
}

class Writer {
 public:
  template <typename T>
  void operator()(const char* key, T&& value) {
    object_[key] = Write(value);
  }

  template <typename T>
  static Json Write(T& value) {
    Writer writer;
    Describe(writer, value);
    return std::move(writer.object_);
  }

 private:
  template <typename T>
  requires std::is_arithmetic_v<T>
  static Json Write(T& value) { return value; }
  static Json Write(std::string& value) { return value; }
  static Json Write(NullAtMax& value) { return value.value == kNever ? Json() : Json(value.value); }
  static Json Write(NullAtInfinity& value) {
    return std::isinf(value.value) ? Json() : Json(value.value);
  }
  template <typename State>
  requires std::is_enum_v<State>
  static Json Write(State& value) {
    for (const auto& word : WordsOf(value))
      if (word.state == value) return word.word;
    CHECK(false);
  }
  static Json Write(Resources& value) {
    Json list = Json::array();
    for (int64_t& amount : value.amount) {
      NullAtMax item{amount};
      list.push_back(Write(item));
    }
    return list;
  }
  static Json Write(RunTimeQuantiles& value) { return value; }
  static Json Write(std::optional<TimeMs>& value) { return value ? Json(*value) : Json(); }
  template <typename T>
  static Json Write(std::map<std::string, T>& value) {
    Json object = Json::object();
    for (auto& [name, item] : value) object[name] = item;
    return object;
  }
  template <typename T>
  static Json Write(std::vector<T>& value) {
    Json list = Json::array();
    for (T& item : value) list.push_back(Write(item));
    return list;
  }

  Json object_ = Json::object();
};

class Reader {
 public:
  Reader(const Json& object, const std::string& where) : object_(object), where_(where) {
    if (!object.is_object()) FailType(where, "an object");
  }

  template <typename T>
  void operator()(const char* key, T&& value) {
    const auto at = object_.find(key);
    const std::string where = where_.empty() ? key : where_ + "." + key;
    if (at == object_.end()) Fail(ErrorCode::kData, "the snapshot lacks {}", where);
    Read(*at, where, value);
    keys_.insert(key);
  }

  template <typename T>
  static void Read(const Json& json, const std::string& where, T& value) {
    Reader reader(json, where);
    Describe(reader, value);
    for (const auto& [key, unused] : json.items())
      if (!reader.keys_.contains(key))
        Fail(ErrorCode::kData, "the snapshot has an unknown key '{}' in {}", key,
             where.empty() ? "its top level" : where);
  }

 private:
  [[noreturn]] static void FailType(const std::string& where, const char* expected) {
    Fail(ErrorCode::kData, "the snapshot's {} is not {}", where.empty() ? "top level" : where,
         expected);
  }

  static void Read(const Json& json, const std::string& where, bool& value) {
    if (!json.is_boolean()) FailType(where, "true or false");
    value = json.get<bool>();
  }
  static void Read(const Json& json, const std::string& where, int64_t& value) {
    const bool too_large =
        json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(kUnlimited);
    if (!json.is_number_integer() || too_large) FailType(where, "a whole number of 64 bits");
    value = json.get<int64_t>();
  }
  static void Read(const Json& json, const std::string& where, int& value) {
    int64_t wide = 0;
    Read(json, where, wide);
    value = static_cast<int>(wide);
    if (value != wide) FailType(where, "a whole number of 32 bits");
  }
  static void Read(const Json& json, const std::string& where, double& value) {
    if (!json.is_number()) FailType(where, "a number");
    value = json.get<double>();
  }
  static void Read(const Json& json, const std::string& where, std::string& value) {
    if (!json.is_string()) FailType(where, "text");
    value = json.get<std::string>();
  }
  static void Read(const Json& json, const std::string& where, NullAtMax& value) {
    json.is_null() ? void(value.value = kNever) : Read(json, where, value.value);
  }
  static void Read(const Json& json, const std::string& where, NullAtInfinity& value) {
    json.is_null() ? void(value.value = INFINITY) : Read(json, where, value.value);
  }
  template <typename State>
  requires std::is_enum_v<State>
  static void Read(const Json& json, const std::string& where, State& value) {
    for (const auto& word : WordsOf(value)) {
      if (json != word.word) continue;
      value = word.state;
      return;
    }
    FailType(where, "a state");
  }
  static void Read(const Json& json, const std::string& where, Resources& value) {
    if (!json.is_array() || json.size() != value.amount.size())
      FailType(where, fmt::format("a list of {} amounts", kMaxResources).c_str());
    for (size_t kind = 0; kind < value.amount.size(); ++kind) {
      NullAtMax item{value.amount[kind]};
      Read(json[kind], fmt::format("{}[{}]", where, kind), item);
    }
  }
  static void Read(const Json& json, const std::string& where, RunTimeQuantiles& value) {
    if (!json.is_array() || json.size() != value.size())
      FailType(where, fmt::format("a list of {} times", value.size()).c_str());
    for (size_t i = 0; i < value.size(); ++i)
      Read(json[i], fmt::format("{}[{}]", where, i), value[i]);
  }
  static void Read(const Json& json, const std::string& where, std::optional<TimeMs>& value) {
    value.reset();
    if (!json.is_null()) Read(json, where, value.emplace());
  }
  template <typename T>
  static void Read(const Json& json, const std::string& where, std::map<std::string, T>& value) {
    if (!json.is_object()) FailType(where, "an object");
    for (const auto& [name, item] : json.items()) Read(item, where + "." + name, value[name]);
  }
  template <typename T>
  static void Read(const Json& json, const std::string& where, std::vector<T>& value) {
    if (!json.is_array()) FailType(where, "a list");
    value.clear();
    for (const Json& item : json) {
      const std::string here = fmt::format("{}[{}]", where, value.size());
      Read(item, here, value.emplace_back());
    }
  }

  const Json& object_;
  std::string where_;
  std::set<std::string> keys_;
};

// nlohmann-json silently keeps the last of two equal keys; here that is an error.
Json ParseWithoutDuplicateKeys(std::string_view text) {
  std::vector<std::set<std::string>> open;
  const auto callback = [&open](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
      Fail(ErrorCode::kData, "the snapshot has the key '{}' twice in one object",
           parsed.get<std::string>());
    return true;
  };
  try {
    return Json::parse(text, callback);
  } catch (const Json::exception& error) {
    Fail(ErrorCode::kData, "the snapshot is not valid JSON: {}", error.what());
  }
}

}  // namespace

std::string SnapshotToJson(const Snapshot& snapshot) {
  Snapshot copy = snapshot;  // Describe() serves both directions and takes mutable values
  return Writer::Write(copy).dump(1);
}

Snapshot SnapshotFromJson(std::string_view text) {
  Snapshot snapshot;
  Reader::Read(ParseWithoutDuplicateKeys(text), "", snapshot);
  CheckIndices(snapshot);
  return snapshot;
}

}  // namespace renzan::cluster::spec
