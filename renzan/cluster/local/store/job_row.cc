// Jobs and attempts as rows.

#include <nlohmann/json.hpp>

#include "renzan/cluster/local/store/store_tables.h"
#include "renzan/cluster/spec/facts_json.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::local::store {
namespace {

using nlohmann::json;

// Bytes that are not UTF-8 are replaced.
std::string Print(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json Parse(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) throw CorruptDatabase("a document is not JSON");
  return value;
}

json DocumentOf(const JobRecord& job) {
  json out = spec::FactsToJson(job, job.attempt.value_or(AttemptRecord()));
  out["name"] = job.name;
  out["queue"] = job.queue;
  out["source"] = job.source;
  out["submitDir"] = job.submit_dir;
  out["user"] = job.user;
  out["uid"] = job.uid;
  out["gid"] = job.gid;
  out["priority"] = job.priority;
  out["minWorkers"] = job.min_workers;
  out["maxWorkers"] = job.max_workers;
  out["cpuMillis"] = job.cpu_millis;
  out["memoryMib"] = job.memory_mib;
  out["gpus"] = job.gpus;
  out["submittedMs"] = job.submitted;
  if (job.cancel_requested) out["cancelRequested"] = true;
  if (!job.damaged.empty()) out["damaged"] = job.damaged;
  if (!job.held_by.empty()) out["heldBy"] = job.held_by;
  if (!job.reservation.empty()) out["reservation"] = spec::PlacementToJson(job.reservation);
  for (const auto& [key, time] : {std::pair("checkpointMs", job.measured.checkpoint_ms),
                                  std::pair("restartMs", job.measured.restart_ms),
                                  std::pair("killedAfterMs", job.measured.killed_after_ms)})
    if (time) out["measured"][key] = *time;
  if (job.collection)
    out["collection"] = {{"becomes", NameOf(job.collection->becomes)},
                         {"endedMs", job.collection->ended},
                         {"text", job.collection->text}};
  return out;
}

void ReadDocument(const json& from, JobRecord& job) {
  const auto small = [&](const char* key) { return static_cast<int>(NumberAt(from, {key})); };
  AttemptRecord attempt;
  if (!spec::FactsFromJson(from, job, attempt)) throw CorruptDatabase("unknown state of a job");
  attempt.job = job.id;
  attempt.number = job.attempts - 1;
  if (!attempt.placement.empty()) job.attempt = std::move(attempt);
  job.name = TextAt(from, {"name"});
  job.queue = TextAt(from, {"queue"});
  job.source = TextAt(from, {"source"});
  job.submit_dir = TextAt(from, {"submitDir"});
  job.user = TextAt(from, {"user"});
  job.uid = static_cast<uid_t>(NumberAt(from, {"uid"}));
  job.gid = static_cast<gid_t>(NumberAt(from, {"gid"}));
  job.priority = small("priority");
  job.min_workers = small("minWorkers");
  job.max_workers = small("maxWorkers");
  job.cpu_millis = NumberAt(from, {"cpuMillis"});
  job.memory_mib = NumberAt(from, {"memoryMib"});
  job.gpus = NumberAt(from, {"gpus"});
  job.submitted = NumberAt(from, {"submittedMs"});
  job.cancel_requested = IsTrueAt(from, {"cancelRequested"});
  job.damaged = TextAt(from, {"damaged"});
  job.held_by = TextAt(from, {"heldBy"});
  job.reservation = spec::PlacementFromJson(At(from, {"reservation"}));
  const json& measured = At(from, {"measured"});
  job.measured = {.checkpoint_ms = OptionalNumberAt(measured, {"checkpointMs"}),
                  .restart_ms = OptionalNumberAt(measured, {"restartMs"}),
                  .killed_after_ms = OptionalNumberAt(measured, {"killedAfterMs"})};
  if (const json& collection = At(from, {"collection"}); !collection.is_null())
    job.collection = {.becomes = StateFrom(TextAt(collection, {"becomes"})),
                      .ended = NumberAt(collection, {"endedMs"}),
                      .text = TextAt(collection, {"text"})};
}

std::optional<int> OptionalCode(const SqlRow& row, size_t column) {
  if (row.IsNull(column)) return std::nullopt;
  return static_cast<int>(row.Int(column));
}

}  // namespace

RecordState StateFrom(const std::string& name) {
  const auto state = RecordStateNamed(name);
  if (!state) throw CorruptDatabase("unknown state of a job");
  return *state;
}

NamedPlacement PlacementFrom(const std::string& text) {
  return spec::PlacementFromJson(Parse(text));
}

std::vector<SqlValue> RowOf(const JobRecord& job, int64_t events) {
  return {job.id,
          job.queue,
          job.user,
          std::string(NameOf(job.state)),
          ToSql(job.ended),
          events,
          Print(DocumentOf(job))};
}

std::vector<SqlValue> TextRowOf(const JobRecord& job) { return {job.id, job.spec, job.manifest}; }

JobRecord JobOf(const SqlRow& row) {
  JobRecord job;
  job.id = row.Int(0);
  ReadDocument(Parse(row.Text(kDocument)), job);
  CheckCollection(job);
  return job;
}

void CheckCollection(const JobRecord& job) {
  if (job.state == RecordState::kCollecting && !job.collection)
    throw CorruptDatabase(fmt::format("how job {} ended is missing", job.id));
}

std::vector<SqlValue> RowOf(const AttemptRecord& attempt) {
  return {attempt.job,
          int64_t{attempt.number},
          Print(spec::PlacementToJson(attempt.placement)),
          Print(spec::PlacementToJson(attempt.target)),
          attempt.started,
          int64_t{attempt.backfilled},
          attempt.stop_reason,
          attempt.stopping_for,
          ToSql(attempt.ended),
          attempt.exit_code ? SqlValue(int64_t{*attempt.exit_code}) : SqlValue(),
          attempt.ended_by,
          attempt.message};
}

AttemptRecord AttemptOf(const SqlRow& row) {
  AttemptRecord attempt;
  attempt.job = row.Int(0);
  attempt.number = static_cast<int>(row.Int(1));
  attempt.placement = PlacementFrom(row.Text(2));
  attempt.target = PlacementFrom(row.Text(3));
  attempt.started = row.Int(4);
  attempt.backfilled = row.Int(5) != 0;
  attempt.stop_reason = row.Text(6);
  attempt.stopping_for = row.Int(7);
  attempt.ended = row.OptionalInt(8);
  attempt.exit_code = OptionalCode(row, 9);
  attempt.ended_by = row.Text(10);
  attempt.message = row.Text(11);
  return attempt;
}

}  // namespace renzan::cluster::local::store
