#pragma once

// The daemon's memory: one SQLite file. What Transact() has returned from is on the disk and
// survives kill -9 and a loss of power; what it threw out of never happened.
//
// Every row carries a checksum, so that damage SQLite does not see is found too. Opening reads and
// checks what is needed to go on (jobs that have not ended, nodes, sums), so that it takes as long
// for a history of any length; rows of jobs that have ended are checked when they are read, and
// counted, so that none is lost unnoticed. A file that has been found corrupt is not written to
// again: there is a copy beside it, state.db.corrupt-UTC with its log, and an Error kData that says
// what to do. For one thread.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/cluster/local/store/records.h"

namespace renzan::cluster::local {

class Database;

// Which of the jobs that have ended.
struct EndedFilter {
  TimeMs since = 0;  // ended then or later
  std::optional<std::string> queue, user;
  std::optional<RecordState> state;
  JobId before = kNever;  // have a lower number
};

class Store {
 public:
  // Opens or creates `path`; one written by an older version of the program is brought up to date.
  // Throws Error kData: corrupt, or written by a newer version.
  explicit Store(const std::string& path);
  ~Store();

  // Not to be nested. Throws Error kIo when the disk is full: nothing has changed then.
  void Transact(const std::function<void()>& change);

  // Within Transact. A record replaces the one with the same key. The usage of a job is put before
  // the job's end, after which it does not change. A job without a specification keeps the one, and
  // the manifest, that the store has.
  void Put(const JobRecord& job);
  void Put(const AttemptRecord& attempt);
  void Put(const CollectionRecord& collection);  // until the job ends
  void Put(const NodeRecord& node);
  void Put(const QuotaOverrideRecord& quota_override);
  void PutUsage(JobId job, const UsageRecord& usage);
  void PutMeasured(JobId job, const Measured& measured);
  void Put(const PoolRecord& pool);
  void Put(const LoanRecord& loan);
  void PutAccountedUntil(TimeMs time);
  void AddEvent(const EventRecord& event);
  // Forgets jobs that have ended, and all that belongs to them. What they have used stays in
  // UsageOfEnded(), and their numbers are not used again.
  void Forget(const std::vector<JobId>& jobs);

  // What has been found wrong with the file since it was opened.
  const std::optional<Error>& damage() const { return damage_; }

  JobId LastJob();  // 0: none yet
  std::vector<JobRecord> UnfinishedJobs();
  // At most so many, those with the highest numbers; sorted by id. Without specification and
  // manifest.
  std::vector<JobRecord> EndedJobs(const EndedFilter& filter, int limit);
  int64_t CountEnded(const EndedFilter& filter);
  // At most so many, those that ended first.
  std::vector<JobId> EndedBefore(TimeMs time, int limit);
  std::optional<JobRecord> FindJob(JobId job);
  std::map<std::string, int64_t> CountByState();   // by NameOf(RecordState)
  std::vector<AttemptRecord> Attempts(JobId job);  // the first one first
  std::vector<EventRecord> Events(JobId job);
  std::vector<NodeRecord> Nodes();
  std::vector<QuotaOverrideRecord> QuotaOverrides();
  UsageRecord Usage(JobId job);
  Measured MeasuredOf(JobId job);
  std::vector<PoolRecord> Pools();
  std::vector<CollectionRecord> Collections();
  // Of all that have ended, also those that are forgotten.
  std::map<QueueAndUser, UsageRecord> UsageOfEnded();
  std::vector<LoanRecord> Loans();
  std::optional<TimeMs> AccountedUntil();

 private:
  // Runs `use`, and turns damage that it meets into the copy and the error.
  template <typename F>
  auto Guarded(F&& use);
  std::optional<int64_t> Fact(const std::string& name);
  void Create();
  void CheckContent();
  void CheckLength();
  void CheckWhole(int64_t version);
  void CheckSmallTables();
  void CheckUnfinished();
  void CountEnded(const JobRecord& job, int64_t jobs, const UsageRecord& usage);
  void Upgrade();
  void UpgradeToVersion3(int64_t from);
  [[noreturn]] void Refuse(const std::string& what);

  std::string path_;
  std::optional<Error> damage_;
  std::unique_ptr<Database> database_;
};

}  // namespace renzan::cluster::local
