#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "renzan/base/clock.h"
#include "renzan/base/file.h"
#include "renzan/base/file_system.h"
#include "renzan/cluster/local/store.h"
#include "renzan/cluster/local/store_tables.h"

namespace renzan::cluster::local {
namespace {

constexpr const char* kSchemaFact = "schema_version";

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

void MarkVersion(Database& database) {
  store::Facts().Put(database, {std::string(kSchemaFact), store::kSchemaVersion});
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

// The structure by SQLite's own checks, what is written in it by the rows' checksums.
void Store::CheckContent() {
  const int64_t user_version = database_->QueryOne("PRAGMA user_version").Int(0);
  if (user_version > store::kSchemaVersion)
    Fail(ErrorCode::kData,
         "{} was written by a newer version of this program (its tables are of version {}, this "
         "program knows {}): use that version, or start with another --state",
         path_, user_version, store::kSchemaVersion);
  const std::string verdict = database_->QueryOne("PRAGMA integrity_check(1)").Text(0);
  if (verdict != "ok") throw CorruptDatabase(verdict);
  std::vector<std::string> expected = store::DefinitionsOf(user_version), found;
  for (const SqlRow& row : database_->Query("SELECT sql FROM sqlite_schema"))
    found.push_back(row.Text(0));
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  if (expected != found) throw CorruptDatabase("its tables are not those of this program");
  for (const CheckedTable* table : store::TablesOf(user_version)) table->Select(*database_);
  const auto version =
      store::Facts().Select(*database_, "WHERE name = ?", {std::string(kSchemaFact)});
  if (version.empty() || version.front().Int(1) != user_version)
    throw CorruptDatabase("it does not say of which version its tables are");
  if (!database_->Query("PRAGMA foreign_key_check").empty())
    throw CorruptDatabase("rows belong to a job that is not there");
}

// What a version before this one wrote, whole as it is, gets the tables and indexes that it does
// not have.
void Store::Upgrade() {
  const int64_t version = database_->QueryOne("PRAGMA user_version").Int(0);
  if (version == store::kSchemaVersion) return;
  const auto there = store::DefinitionsOf(version);
  database_->Transact([&] {
    for (const std::string& definition : store::DefinitionsOf(store::kSchemaVersion))
      if (std::find(there.begin(), there.end(), definition) == there.end())
        database_->Run(definition);
    MarkVersion(*database_);
  });
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
                    fmt::format("{} is damaged ({}). A copy of it as it was found is {}. Restore "
                                "it from a backup, or run `sqlite3 {} .recover` to save what can "
                                "be read, or start with another --state",
                                path_, what, copy, copy));
  } catch (const Error& error) {
    damage_.emplace(ErrorCode::kData,
                    fmt::format("{} is damaged ({}), and it could not be copied ({}). Copy it "
                                "yourself before anything else, then run `sqlite3 COPY .recover` "
                                "or start with another --state",
                                path_, what, error.what()));
  }
  throw *damage_;
}

}  // namespace renzan::cluster::local
