#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "renzan/base/clock.h"
#include "renzan/base/file.h"
#include "renzan/base/file_system.h"
#include "renzan/cluster/local/store/row_counts.h"
#include "renzan/cluster/local/store/store.h"
#include "renzan/cluster/local/store/store_tables.h"

namespace renzan::cluster::local {
namespace {

// Only its owner may read it: jobs' environments are in it.
void CopyPrivately(const std::string& from, const std::string& to) {
  FileWriter out(to);
  if (::chmod(to.c_str(), 0600) != 0) FailErrno(errno, "cannot change the mode of " + to);
  ReadInPieces(from, [&](std::span<const char> piece) { out.Write(piece.data(), piece.size()); });
  out.Close();
}

// "state.db.corrupt-2026-01-31T12:34:56Z", with a number where that is taken.
std::string NameForCopy(const std::string& path) {
  const std::string name = path + ".corrupt-" + FormatUtc(SystemClock().UnixSeconds());
  std::string free = name;
  for (int number = 2; FileExists(free); ++number) free = fmt::format("{}-{}", name, number);
  return free;
}

// Of a job that a version before 3 wrote, but for what it measured.
void CountRows(Database& database, JobId job) {
  store::BeginCounting(database, job);
  for (const auto& [table, what] : {std::pair(&store::Attempts(), store::Counted::kAttempts),
                                    std::pair(&store::Events(), store::Counted::kEvents),
                                    std::pair(&store::Usage(), store::Counted::kUsage)}) {
    const auto rows =
        database.Query(fmt::format("SELECT count(*) FROM {} WHERE job = ?", table->name()), {job});
    store::ExpectRows(database, job, what, rows.front().Int(0));
  }
}

void MarkVersion(Database& database) {
  store::Facts().Put(database, {std::string(store::kSchemaFact), store::kSchemaVersion});
  database.Run(fmt::format("PRAGMA user_version = {}", store::kSchemaVersion));
}

}  // namespace

Store::Store(const std::string& path) : path_(path) {
  try {
    if (!FileExists(path)) Create();
    database_ = std::make_unique<Database>(path);
    CheckContent();
    Upgrade();
  } catch (const CorruptDatabase& damage) {
    Refuse(damage.what());
  }
}

// Beside, and renamed when it is whole: a file that is empty has therefore lost what was in it.
void Store::Create() {
  const std::string made = path_ + ".new";
  for (const char* suffix : {"", "-wal", "-shm"})
    if (FileSystem::Get().Unlink(made + suffix) != 0 && errno != ENOENT)
      FailErrno(errno, fmt::format("cannot remove {}{}", made, suffix));
  {
    Database database(made);
    database.Transact([&] {
      for (const std::string& definition : store::DefinitionsOf(store::kSchemaVersion))
        database.Run(definition);
      MarkVersion(database);
    });
  }
  const std::string directory = std::filesystem::path(path_).parent_path();
  if (FileSystem::Get().Rename(made, path_) != 0 || FileSystem::Get().SyncDirectory(directory) != 0)
    FailErrno(errno, "cannot create " + path_);
}

// Pages beyond the end would be read as empty ones.
void Store::CheckLength() {
  const int64_t pages = database_->QueryOne("PRAGMA page_count").Int(0);
  const int64_t page_size = database_->QueryOne("PRAGMA page_size").Int(0);
  // What has been added lately may be in the log only.
  if (FileExists(path_ + "-wal") && std::filesystem::file_size(path_ + "-wal") > 0) return;
  if (static_cast<int64_t>(std::filesystem::file_size(path_)) < pages * page_size)
    throw CorruptDatabase("it has been cut short");
}

void Store::CheckContent() {
  const int64_t user_version = database_->QueryOne("PRAGMA user_version").Int(0);
  if (user_version > store::kSchemaVersion)
    Fail(ErrorCode::kData,
         "{} was written by a newer version of this program (its tables are of version {}, this "
         "program knows {}): use that version, or start with another --state",
         path_, user_version, store::kSchemaVersion);
  CheckLength();
  std::vector<std::string> expected = store::DefinitionsOf(user_version), found;
  for (const SqlRow& row : database_->Query("SELECT sql FROM sqlite_schema"))
    found.push_back(row.Text(0));
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  if (expected != found) throw CorruptDatabase("its tables are not those of this program");
  const auto version =
      store::Facts().Select(*database_, "WHERE name = ?", {std::string(store::kSchemaFact)});
  if (version.empty() || version.front().Int(1) != user_version)
    throw CorruptDatabase("it does not say of which version its tables are");
  if (user_version < store::kSchemaVersion) {
    CheckWhole(user_version);
  } else {
    CheckSmallTables();
    CheckUnfinished();
  }
}

// Before it is brought up to date, which reads everything anyway.
void Store::CheckWhole(int64_t version) {
  const std::string verdict = database_->QueryOne("PRAGMA integrity_check(1)").Text(0);
  if (verdict != "ok") throw CorruptDatabase(verdict);
  for (const CheckedTable* table : store::TablesOf(version)) table->Select(*database_);
  if (!database_->Query("PRAGMA foreign_key_check").empty())
    throw CorruptDatabase("rows belong to a job that is not there");
}

// Those that do not grow with what has ended: the structure by SQLite's own checks, what is written
// in it by the rows' checksums.
void Store::CheckSmallTables() {
  for (const CheckedTable* table :
       {&store::Facts(), &store::Nodes(), &store::Pools(), &store::QuotaOverrides(),
        &store::Loans(), &store::EndedSums(), &store::Collections()}) {
    const std::string verdict =
        database_->QueryOne(fmt::format("PRAGMA integrity_check({})", table->name())).Text(0);
    if (verdict != "ok") throw CorruptDatabase(verdict);
    table->Select(*database_);
  }
}

// They are all there, with their attempts. A page of an index or a table that lost some of them
// would not be noticed by reading it.
void Store::CheckUnfinished() {
  const std::vector<JobRecord> jobs = UnfinishedJobs();
  if (static_cast<int64_t>(jobs.size()) != Fact(store::kUnfinishedJobs).value_or(0))
    throw CorruptDatabase("jobs that have not ended are missing");
  size_t collecting = 0;
  for (const JobRecord& job : jobs) {
    if (job.ended) throw CorruptDatabase("an index is not that of its table");
    if (static_cast<int>(Attempts(job.id).size()) != job.attempts)
      throw CorruptDatabase(fmt::format("attempts of job {} are missing", job.id));
    Usage(job.id);
    MeasuredOf(job.id);
    Events(job.id);
    collecting += job.state == RecordState::kCollecting ? 1 : 0;
  }
  if (collecting != Collections().size()) throw CorruptDatabase("collections are missing");
}

// What a version before this one wrote, whole as it is.
void Store::Upgrade() {
  const int64_t version = database_->QueryOne("PRAGMA user_version").Int(0);
  if (version == store::kSchemaVersion) return;
  const auto there = store::DefinitionsOf(version);
  database_->Transact([&] {
    for (const std::string& definition : store::DefinitionsOf(store::kSchemaVersion))
      if (std::find(there.begin(), there.end(), definition) == there.end())
        database_->Run(definition);
    UpgradeToVersion3(version);
    MarkVersion(*database_);
  });
}

// Which counts as it goes what the one before read again at every start.
void Store::UpgradeToVersion3(int64_t from) {
  JobId last = Fact("last_forgotten_job").value_or(0);
  int64_t unfinished = 0;
  for (const SqlRow& row : store::Jobs().Select(*database_)) {
    const JobRecord job = store::JobOf(row);
    last = std::max(last, job.id);
    CountRows(*database_, job.id);
    if (job.ended)
      CountEnded(job, 1, Usage(job.id));
    else
      ++unfinished;
  }
  store::Facts().Delete(*database_, "name", std::string("last_forgotten_job"));
  store::Facts().Put(*database_, {std::string(store::kLastJob), last});
  store::Facts().Put(*database_, {std::string(store::kUnfinishedJobs), unfinished});
  if (from < 2) return;
  for (const SqlRow& row : store::ForgottenUsage().Select(*database_))
    CountEnded({.queue = row.Text(0), .user = row.Text(1), .state = RecordState::kDone}, 0,
               {.gpu_seconds = row.Real(2), .cost = row.Real(3)});
  for (const SqlRow& row : store::MeasuredTimes2().Select(*database_))
    PutMeasured(row.Int(0),
                {.checkpoint_ms = row.OptionalInt(1), .restart_ms = row.OptionalInt(2)});
  for (const CheckedTable* table : {&store::ForgottenUsage(), &store::MeasuredTimes2()})
    database_->Run("DROP TABLE " + table->name());
}

// Once: what has been found again later is the same damage.
void Store::Refuse(const std::string& what) {
  if (damage_) throw *damage_;
  const std::string copy = NameForCopy(path_);
  // Before the connection is closed, which would write the log back into the file.
  try {
    CopyPrivately(path_, copy);
    if (FileExists(path_ + "-wal")) CopyPrivately(path_ + "-wal", copy + "-wal");
    damage_.emplace(ErrorCode::kData,
                    fmt::format("{} is corrupt ({}). A copy of it as it was found is {}. Restore "
                                "it from a backup, or run `sqlite3 {} .recover` to save what can "
                                "be read, or start with another --state",
                                path_, what, copy, copy));
  } catch (const Error& error) {
    damage_.emplace(ErrorCode::kData,
                    fmt::format("{} is corrupt ({}), and it could not be copied ({}). Copy it "
                                "yourself before anything else, then run `sqlite3 COPY .recover` "
                                "or start with another --state",
                                path_, what, error.what()));
  }
  throw *damage_;
}

}  // namespace renzan::cluster::local
