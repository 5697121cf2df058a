#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "renzan/base/clock.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/sha256.h"
#include "renzan/cluster/local/store/old_tables.h"
#include "renzan/cluster/local/store/reserved_room.h"
#include "renzan/cluster/local/store/store.h"
#include "renzan/cluster/local/store/store_tables.h"

namespace renzan::cluster::local {
namespace {

// Only the owner may read the copy: it contains jobs' environments.
void CopyPrivately(const std::string& from, const std::string& to) {
  FileWriter out(to);
  if (::chmod(to.c_str(), 0600) != 0) FailErrno(errno, "cannot change the mode of " + to);
  ReadInPieces(from, [&](std::span<const char> piece) { out.Write(piece.data(), piece.size()); });
  out.Close();
}

// "state.db.corrupt-2026-01-31T12:34:56Z", with a number if that exists.
std::string NameForCopy(const std::string& path) {
  const std::string name = path + ".corrupt-" + FormatUtc(SystemClock().UnixSeconds());
  std::string free = name;
  for (int number = 2; FileExists(free); ++number) free = fmt::format("{}-{}", name, number);
  return free;
}

bool SameContent(const std::string& a, const std::string& b) {
  if (!FileExists(a) || !FileExists(b)) return FileExists(a) == FileExists(b);
  return std::filesystem::file_size(a) == std::filesystem::file_size(b) &&
         Sha256OfFile(a) == Sha256OfFile(b);
}

// An earlier copy of the database in its current state, or "": otherwise each start of the daemon
// would make another one.
std::string CopyOf(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string prefix = file.filename().string() + ".corrupt-";
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(file.parent_path(), unreadable)) {
    const std::string copy = entry.path();
    if (!entry.path().filename().string().starts_with(prefix) || copy.ends_with("-wal")) continue;
    try {
      if (SameContent(path, copy) && SameContent(path + "-wal", copy + "-wal")) return copy;
    } catch (const std::exception&) {
      continue;  // it cannot be read, so it is not a copy to rely on
    }
  }
  return "";
}

}  // namespace

Store::Store(const std::string& path) : path_(path) {
  try {
    if (!FileExists(path)) Create();
    store::TakeUpLogRoom(path);
    database_ = std::make_unique<Database>(path);
    CheckContent();
    Upgrade();
  } catch (const CorruptDatabase& error) {
    FailCorrupt(error.what());
  }
}

// Under another name first, and renamed once complete. An empty state.db is therefore corrupt.
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
      store::MarkVersion(database);
    });
  }
  const std::string directory = std::filesystem::path(path_).parent_path();
  if (FileSystem::Get().Rename(made, path_) != 0 || FileSystem::Get().SyncDirectory(directory) != 0)
    FailErrno(errno, "cannot create " + path_);
}

// Pages beyond the end of the file would be read as empty.
void Store::CheckLength() {
  const int64_t pages = database_->QueryOne("PRAGMA page_count").Int(0);
  const int64_t page_size = database_->QueryOne("PRAGMA page_size").Int(0);
  // The latest pages may be in the write-ahead log only.
  if (store::HasLog(path_)) return;
  if (static_cast<int64_t>(std::filesystem::file_size(path_)) < pages * page_size)
    throw CorruptDatabase("it is truncated");
}

void Store::CheckContent() {
  const int64_t user_version = database_->QueryOne("PRAGMA user_version").Int(0);
  if (user_version > store::kSchemaVersion)
    Fail(ErrorCode::kData,
         "{} was written by a newer version of this program (schema version {}, this program "
         "supports up to {}): use that version, or start with another --state",
         path_, user_version, store::kSchemaVersion);
  CheckLength();
  std::vector<std::string> expected = store::DefinitionsOf(user_version);
  std::vector<std::string> found = store::SchemaOf(*database_);
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  if (expected != found) throw CorruptDatabase("its schema is not that of this program");
  const auto version =
      store::Facts().Select(*database_, "WHERE name = ?", {std::string(store::kSchemaFact)});
  if (version.empty() || version.front().Int(1) != user_version)
    throw CorruptDatabase("its schema version is missing");
  if (user_version < store::kSchemaVersion) {
    CheckWhole(user_version);
  } else {
    CheckSmallTables();
    CheckUnfinished();
  }
}

// Before an upgrade, which reads everything anyway.
void Store::CheckWhole(int64_t version) {
  const std::string verdict = database_->QueryOne("PRAGMA integrity_check(1)").Text(0);
  if (verdict != "ok") throw CorruptDatabase(verdict);
  for (const CheckedTable* table : store::TablesOf(version))
    if (table != &store::JobsV11()) table->Select(*database_);  // each job for itself: SplitTexts()
  if (!database_->Query("PRAGMA foreign_key_check").empty())
    throw CorruptDatabase("rows belong to a job that does not exist");
}

// Tables that do not grow with the history. SQLite checks their structure, the checksums their
// values.
void Store::CheckSmallTables() {
  for (const CheckedTable* table :
       {&store::Facts(), &store::Nodes(), &store::Pools(), &store::QuotaOverrides(),
        &store::Loans(), &store::EndedSums(), &store::EndedRunTimes(), &store::EarlyFailures(),
        &store::Closures(), &store::UsedLately()}) {
    const std::string verdict =
        database_->QueryOne(fmt::format("PRAGMA integrity_check({})", table->name())).Text(0);
    if (verdict != "ok") throw CorruptDatabase(verdict);
    table->Select(*database_);
  }
}

// Checks that all unfinished jobs and their attempts are there: reading a page that has lost some
// does not fail.
void Store::CheckUnfinished() {
  const std::vector<JobId> jobs = UnfinishedIds();
  if (static_cast<int64_t>(jobs.size()) != Fact(store::kUnfinishedJobs).value_or(0))
    throw CorruptDatabase("unfinished jobs are missing");
  for (const JobId job : jobs) {
    if (RecordOf(job, /*with_texts=*/true).value().ended)
      throw CorruptDatabase("an index does not match its table");
    Attempts(job);
    Events(job);
    Usage(job);
  }
}

// Copies the file only once: later errors have the same cause.
void Store::FailCorrupt(const std::string& what) {
  if (corruption_) throw *corruption_;
  std::string copy;
  // Before the connection is closed, which would write the log into the file.
  try {
    copy = CopyOf(path_);
    if (copy.empty()) {
      copy = NameForCopy(path_);
      CopyPrivately(path_, copy);
      if (FileExists(path_ + "-wal")) CopyPrivately(path_ + "-wal", copy + "-wal");
    }
    corruption_.emplace(
        ErrorCode::kData,
        fmt::format("{} is corrupt ({}). It was copied to {}. Restore it from a "
                    "backup, run `sqlite3 {} .recover` to save what can be read, or "
                    "start with another --state",
                    path_, what, copy, copy));
  } catch (const Error& error) {
    corruption_.emplace(
        ErrorCode::kData,
        fmt::format("{} is corrupt ({}), and it could not be copied ({}). Copy it "
                    "yourself first, then run `sqlite3 COPY .recover` or start with "
                    "another --state",
                    path_, what, error.what()));
  }
  throw *corruption_;
}

}  // namespace renzan::cluster::local
