// Store: jobs as they are read, and what is still known of one whose record is damaged.

#include <algorithm>

#include "renzan/base/clock.h"
#include "renzan/base/log.h"
#include "renzan/cluster/local/store/guarded-inl.h"
#include "renzan/cluster/local/store/store_tables.h"

namespace renzan::cluster::local {
namespace {

// As text; bytes stay as they are.
SqlValue AsText(const SqlValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return fmt::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return fmt::to_string(*number);
  return value;
}

// What columns of jobs say, from an index: a copy that is apart from their rows.
const char* const kSelectByOwner =
    "SELECT queue, user, state, ended FROM jobs INDEXED BY jobs_by_owner WHERE id = ?";

}  // namespace

std::optional<Store::StoredJob> Store::Look(JobId id, bool with_texts) {
  const std::optional<CheckedRow> row = store::Jobs().Find(*database_, id);
  if (!row) {
    // Each job has usage, possibly none.
    if (!store::Usage().Select(*database_, "WHERE job = ?", {id}).empty())
      throw CorruptDatabase(fmt::format("job {} is missing", id));
    return std::nullopt;
  }
  StoredJob job;
  std::vector<std::string> damage;
  if (!row->intact) {
    damage.emplace_back("its row of table jobs has a wrong checksum");
  } else {
    try {
      job.record = store::JobOf(row->row);
    } catch (const CorruptDatabase& error) {
      damage.push_back(fmt::format("its row of table jobs cannot be read: {}", error.what()));
    }
  }
  job.events = job.record ? row->row.Int(store::kEvents) : CountRows(store::Events(), id);
  if (with_texts) {
    const std::optional<CheckedRow> texts = store::JobTexts().Find(*database_, id);
    if (!texts) throw CorruptDatabase(fmt::format("the specification of job {} is missing", id));
    if (texts->intact)
      job.texts = {texts->row.Text(store::kSpec), texts->row.Text(store::kManifest)};
    else
      damage.emplace_back("its row of table job_texts has a wrong checksum");
  }
  job.damage = fmt::format("{}", fmt::join(damage, "; "));
  return job;
}

int64_t Store::CountRows(const CheckedTable& table, JobId job) {
  return database_->Query(fmt::format("SELECT count(*) FROM {} WHERE job = ?", table.name()), {job})
      .at(0)
      .Int(0);
}

DamagedJob Store::Salvage(JobId id, const StoredJob& stored) {
  DamagedJob job{.record = stored.record.value_or(JobRecord()),
                 .owner_known = stored.record.has_value()};
  JobRecord& record = job.record;
  if (!stored.record) {
    const std::vector<SqlRow> known = database_->Query(kSelectByOwner, {id});
    if (known.size() != 1) throw CorruptDatabase("an index does not match its table");
    record.id = id;
    record.name = fmt::format("job-{}", id);
    record.uid = record.gid = kNobodysJob;
    record.queue = known[0].Text(0);
    record.user = known[0].Text(1);
    record.state = store::StateFrom(known[0].Text(2));
    record.ended = known[0].OptionalInt(3);
    if (HasEnded(record.state) != record.ended.has_value())
      throw CorruptDatabase("an index does not match its table");
    for (const SqlRow& row :
         store::Attempts().Select(*database_, "WHERE job = ? ORDER BY number", {id})) {
      const AttemptRecord attempt = store::AttemptOf(row);
      if (!record.first_started) record.first_started = attempt.started;
      if (attempt.exit_code) record.exit_code = attempt.exit_code;
      ++record.attempts;
    }
    const std::vector<SqlRow> submitted =
        store::Events().Select(*database_, "WHERE job = ? ORDER BY number LIMIT 1", {id});
    if (!submitted.empty()) record.submitted = submitted[0].Int(2);
    record.waiting_since = record.submitted;
  }
  if (stored.texts) {
    record.spec = stored.texts->spec;
    record.manifest = stored.texts->manifest;
  }
  record.damaged = fmt::format("its record in state.db is damaged ({})", stored.damage);
  if (record.message.empty()) record.message = record.damaged;
  if (record.ended && reported_.insert(id).second)
    LogError("job {}: {}: it had ended; not all of it is known any more", id, record.damaged);
  return job;
}

std::optional<JobRecord> Store::RecordOf(JobId id, bool with_texts) {
  std::optional<StoredJob> stored = Look(id, with_texts);
  if (!stored) return std::nullopt;
  if (!stored->damage.empty()) return Salvage(id, *stored).record;
  if (with_texts) {
    stored->record->spec = std::move(stored->texts->spec);
    stored->record->manifest = std::move(stored->texts->manifest);
  }
  return std::move(stored->record);
}

// From an index: a damaged row may say that it has ended.
std::vector<JobId> Store::UnfinishedIds() {
  std::vector<JobId> jobs;
  for (const SqlRow& row : database_->Query(
           "SELECT id FROM jobs INDEXED BY jobs_unfinished WHERE ended IS NULL ORDER BY id"))
    jobs.push_back(row.Int(0));
  return jobs;
}

std::vector<JobRecord> Store::UnfinishedJobs() {
  return Guarded([&] {
    std::vector<JobRecord> jobs;
    for (const JobId id : UnfinishedIds()) {
      std::optional<StoredJob> stored = Look(id, /*with_texts=*/true);
      if (!stored) throw CorruptDatabase("an index refers to a job that does not exist");
      if (!stored->damage.empty()) continue;
      stored->record->spec = std::move(stored->texts->spec);
      stored->record->manifest = std::move(stored->texts->manifest);
      jobs.push_back(std::move(*stored->record));
    }
    return jobs;
  });
}

std::vector<DamagedJob> Store::DamagedJobs() {
  return Guarded([&] {
    std::vector<DamagedJob> jobs;
    for (const JobId id : UnfinishedIds()) {
      const std::optional<StoredJob> stored = Look(id, /*with_texts=*/true);
      if (!stored) throw CorruptDatabase("an index refers to a job that does not exist");
      if (stored->damage.empty()) continue;
      jobs.push_back(Salvage(id, *stored));
      if (reported_.insert(id).second)
        LogError("job {}: {}: this job is ended, and no other", id, jobs.back().record.damaged);
    }
    return jobs;
  });
}

std::optional<JobTexts> Store::TextsOf(JobId job) {
  return Guarded([&] { return Look(job, /*with_texts=*/true).value().texts; });
}

void Store::PutSalvaged(const JobRecord& job, const EventRecord& event) {
  if (!TextsOf(job.id)) KeepDamaged(store::JobTexts(), job.id);
  store::JobTexts().Put(*database_, store::TextRowOf(job));
  Put(job, event);
}

void Store::KeepDamaged(const CheckedTable& table, JobId job) {
  const std::optional<CheckedRow> row = table.Find(*database_, job);
  const int64_t now = SystemClock().UnixMs();
  std::vector<std::string> columns = table.columns();
  columns.emplace_back("checksum");
  for (size_t i = 0; i < row->row.values().size(); ++i)
    store::Damaged().Put(*database_,
                         {job, table.name(), columns[i], now, AsText(row->row.values()[i])});
}

// SQLite finds entries of indexes by the values of a row, and would not find those of a row whose
// values are damaged.
void Store::MatchIndexes(JobId job) {
  const std::vector<SqlRow>
      known = database_->Query(kSelectByOwner, {job}),
      row = database_->Query("SELECT queue, user, state, ended FROM jobs NOT INDEXED WHERE id = ?",
                             {job});
  if (known.size() != 1 || row.size() != 1 || known[0].values() != row[0].values())
    database_->Run("REINDEX jobs");
}

}  // namespace renzan::cluster::local
