#pragma once

// The daemon's persistent state, in one SQLite file. Once Transact() returns, its changes are on
// disk and survive kill -9 and power loss; if it throws, nothing has changed.
//
// Every row has a checksum, which detects corruption that SQLite does not. Opening reads and checks
// only what the daemon needs to continue (unfinished jobs, nodes, sums), so it does not slow down
// as the history grows. Rows of ended jobs are checked when they are read, and counted, so that
// missing rows are detected. Where the record of a job is damaged (its row does not match its
// checksum, or cannot be read), the others are not concerned: DamagedJobs(), FindJob(). Anything
// else makes the file corrupt. A corrupt file is never written to again: it is copied to
// state.db.corrupt-UTC next to it (with its write-ahead log), and an Error kData says what to do.
// For one thread.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/cluster/local/store/records.h"

namespace renzan::cluster::local {

class CheckedTable;
class Database;
class SqlRow;

// Selects ended jobs.
struct EndedFilter {
  TimeMs since = 0;  // ended at this time or later
  std::optional<std::string> queue, user;
  std::optional<RecordState> state;
  JobId before = kNever;  // have a lower id
};

class Store {
 public:
  // Opens or creates `path`; upgrades a file written by an older version of the program. Throws
  // Error kData if it is corrupt or was written by a newer version.
  explicit Store(const std::string& path);
  ~Store();

  // Must not be nested. Throws Error kIo when the disk is full; then nothing has changed.
  void Transact(const std::function<void()>& change);

  // Allocates room on the disk, so that Transact() works for a while when the disk is full
  // (reserved_room.h). Call it now and then: the room is used up, and made again here. Throws Error
  // kIo if there is none.
  void ReserveRoom();

  // Within Transact. A record replaces the one with the same key. Put a job's usage before its end,
  // after which it must not change. For a job without `spec`, the store keeps the spec and the
  // manifest that it has. The event follows the job's earlier ones.
  void Put(const JobRecord& job, const std::optional<EventRecord>& event = {});
  // Instead of one of DamagedJobs(): what was damaged stays in a table of its own, and the job's
  // texts become those of `job`, even if they are empty.
  void PutSalvaged(const JobRecord& job, const EventRecord& event);
  void Put(const AttemptRecord& attempt);  // has ended
  void Put(const NodeRecord& node);
  void Put(const QuotaOverrideRecord& quota_override);
  void Put(const EarlyFailure& failure);
  // They outlive their jobs.
  void DeleteEarlyFailures(JobId job);
  void DeleteEarlyFailuresOn(const std::string& node);
  // Those of an attempt that has ended and used anything.
  void Put(const UsageSpan& span);
  void Put(const UsedLatelyRecord& used);
  void PutUsage(JobId job, const UsageRecord& usage);
  void Put(const PoolRecord& pool);
  void Put(const LoanRecord& loan);
  void PutAccountedUntil(TimeMs time);
  // Records that a job ended after it ran for `ran`. Deletes those that no prediction needs any
  // more.
  void AddRunTime(const JobTraits& traits, TimeMs ran);
  // Deletes ended jobs with everything that belongs to them. Their usage stays in UsageOfEnded(),
  // and their ids are not reused.
  void DeleteJobs(const std::vector<JobId>& jobs);

  // Set once the file has been found corrupt.
  const std::optional<Error>& corruption() const { return corruption_; }

  JobId LastJob();  // 0: none yet
  // Those whose records are intact, and the others: PutSalvaged() makes one of the former of them.
  std::vector<JobRecord> UnfinishedJobs();
  std::vector<DamagedJob> DamagedJobs();
  // The at most `limit` jobs with the highest ids, sorted by id, without `spec` and `manifest`.
  std::vector<JobRecord> EndedJobs(const EndedFilter& filter, int limit);
  int64_t CountEnded(const EndedFilter& filter);
  // The at most `limit` jobs that ended first, of those after `after`.
  std::vector<EndedKey> EndedBefore(TimeMs time, const EndedKey& after, int limit);
  // When the first one ended that is still here.
  std::optional<TimeMs> FirstEnd();
  // If its record is damaged: what is still known of it, and what is not (JobRecord::damaged), of
  // which the log has a warning, once.
  std::optional<JobRecord> FindJob(JobId job);
  // Nothing: they are damaged. The job must exist.
  std::optional<JobTexts> TextsOf(JobId job);
  std::map<std::string, int64_t> CountByState();   // by NameOf(RecordState)
  std::vector<AttemptRecord> Attempts(JobId job);  // the first one first
  std::vector<EventRecord> Events(JobId job);
  std::vector<NodeRecord> Nodes();
  std::vector<EarlyFailure> EarlyFailures();  // by job and node
  std::vector<QuotaOverrideRecord> QuotaOverrides();
  // Those with higher numbers, in order.
  std::vector<EndedRunTime> EndedRunTimesAfter(int64_t number);
  UsageRecord Usage(JobId job);
  std::vector<UsageSpan> UsageSpansOf(JobId job);  // by attempt
  // The next ones, in the order of their keys, of all jobs, including deleted ones.
  std::vector<UsageSpan> UsageSpansAfter(const UsageSpanKey& after, int limit);
  // Of jobs that had been deleted by then there are no spans; nothing: there are all.
  std::optional<TimeMs> UsageDatedSince();
  std::vector<UsedLatelyRecord> UsedLately();
  std::vector<PoolRecord> Pools();
  // Of all ended jobs, including deleted ones.
  std::map<QueueAndUser, UsageRecord> UsageOfEnded();
  std::vector<LoanRecord> Loans();
  std::optional<TimeMs> AccountedUntil();

 private:
  // Runs `use`; turns CorruptDatabase into the copy and the error described above.
  template <typename F>
  auto Guarded(F&& use);
  std::optional<int64_t> Fact(const std::string& name);
  void Create();
  void CheckContent();
  void CheckLength();
  void CheckWhole(int64_t version);
  void CheckSmallTables();
  void CheckUnfinished();
  // A job as it is in the database.
  struct StoredJob {
    std::optional<JobRecord> record;  // without its texts; nothing: it is damaged
    std::optional<JobTexts> texts;    // nothing: they are damaged, or not wanted
    std::string damage;               // what is damaged; empty: nothing
    int64_t events = 0;
  };
  // Nothing: there is no such job.
  std::optional<StoredJob> Look(JobId job, bool with_texts);
  DamagedJob Salvage(JobId job, const StoredJob& stored);
  std::optional<JobRecord> RecordOf(JobId job, bool with_texts);
  std::vector<JobId> UnfinishedIds();
  int64_t CountRows(const CheckedTable& table, JobId job);
  void KeepDamaged(const CheckedTable& table, JobId job);
  void MatchIndexes(JobId job);
  void CountEnded(const JobRecord& job, int64_t jobs, const UsageRecord& usage);
  void CountUsageOfEnded(const JobRecord& job);
  void Upgrade();
  void MakeDocuments(int64_t from);
  void SplitTexts();
  void UpgradeToVersion3(int64_t from);
  void UpgradeToVersion5();
  void UpgradeToVersion7();
  void UpgradeToVersion9();
  [[noreturn]] void FailCorrupt(const std::string& what);

  std::string path_;
  std::optional<Error> corruption_;
  bool room_reserved_ = false;
  std::set<JobId> reported_;  // damaged, of which the log says so
  std::unique_ptr<Database> database_;
};

}  // namespace renzan::cluster::local
