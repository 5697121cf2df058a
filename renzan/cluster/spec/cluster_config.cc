#include "renzan/cluster/spec/cluster_config.h"

#include <algorithm>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/cluster/spec/describe.h"
#include "renzan/cluster/spec/fair_share.h"
#include "renzan/cluster/spec/names.h"

namespace renzan::cluster::spec {
namespace {

constexpr const char* kFirstCome = "first_come";
constexpr const char* kGittins = "gittins";

constexpr double kMaxPrice = 1e6;
constexpr double kMaxQuotaCores = 1e9;

template <typename T>
void RequireNames(ConfigFields& fields, const char* key, const char* what,
                  bool is_name(std::string_view), const std::map<std::string, T>& named) {
  for (const auto& [name, value] : named)
    fields.Require(is_name(name), key,
                   fmt::format("has the {} '{}': a name {}", what, name, kNameRule));
}

void DescribeTopology(ConfigFields& fields, std::vector<std::string>* topology) {
  fields.Field("topology", topology,
               "node labels that are topology levels, widest first; host is implied");
  for (size_t i = 0; i < topology->size(); ++i) {
    const std::string& level = (*topology)[i];
    fields.Require(IsLabelKey(level), "topology",
                   fmt::format("has the level '{}': a level {}", level, kNameRule));
    fields.Require(level != "host", "topology",
                   "has the level host, which is the node itself and always exists: leave it out");
    fields.Require(
        std::find(topology->begin(), topology->begin() + i, level) == topology->begin() + i,
        "topology", fmt::format("has the level {} twice", level));
  }
}

// "" if every level of the pool's domains is declared and the domains are nested.
std::string WrongDomains(const ClusterConfig::PoolConfig& pool,
                         const std::vector<std::string>& topology) {
  for (const auto& [level, count] : pool.domains) {
    if (std::find(topology.begin(), topology.end(), level) != topology.end()) continue;
    const std::string nearest = NearestName(level, topology);
    return fmt::format("domains of '{}', which topology does not declare{}", level,
                       nearest.empty() ? fmt::format(": add it there ([{}])", level)
                                       : fmt::format(": did you mean '{}'?", nearest));
  }
  int64_t wider = 1;
  for (const std::string& level : topology) {
    const auto domains = pool.domains.find(level);
    if (domains == pool.domains.end()) continue;
    if (pool.labels.contains(level))
      return fmt::format("both a label {0} and domains of {0}", level);
    if (domains->second % wider != 0)
      return fmt::format("{} domains of {}, which must be a multiple of the {} of the level above",
                         domains->second, level, wider);
    wider = domains->second;
  }
  return "";
}

int64_t AsRead(const std::string& duration) {
  const std::optional<int64_t> given = TryParseMilliseconds(duration);
  CHECK_MSG(given.has_value(), "the configuration has not been read");
  return *given;
}

}  // namespace

void ClusterConfig::PoolConfig::Describe(ConfigFields& fields) {
  fields.Field("nodes", &nodes, "4, or 0..20 if nodes are bought and returned");
  const std::optional<spec::Range> range = TryParseRange(nodes);
  fields.Require(range && range->max >= 1, "nodes",
                 "must be a number of nodes such as 4, or a range such as 0..20, at most 100000");
  fields.Section("resources", &resources, "of one node");
  DescribeLabels(fields, "labels", &labels, "of its nodes: {gpu_model: a100}");
  fields.Field("domains", &domains,
               "number of topology domains per level over which nodes are spread: {rack: 4}");
  for (const auto& [level, count] : domains)
    fields.Require(
        count >= 1 && count <= kMaxWorkers, "domains",
        fmt::format("has {}: {}, but a count is from 1 to {}", level, count, kMaxWorkers));
  fields.Field("spot", &spot, "nodes may be taken away on short notice");
  fields.Range("price_per_hour", &price_per_hour, 0, kMaxPrice, "of one node");
  DescribeDuration(fields, "boot", &boot, "from buying a node until it is ready");
  DescribeDuration(fields, "idle", &idle, "a bought node is returned after being idle this long");
  fields.Range("interruptions_per_hour", &interruptions_per_hour, 0, 3600, "of one node");
}

void ClusterConfig::QuotaConfig::Describe(ConfigFields& fields) {
  fields.Field("cpu", &cpu, "cores; -1: not set");
  fields.Require(cpu == -1 || (cpu >= 0 && cpu <= kMaxQuotaCores), "cpu",
                 fmt::format("must be from 0 to {}, or -1 for not set", kMaxQuotaCores));
  fields.Field("memory", &memory, "such as 2TiB; empty: not set");
  fields.Require(memory.empty() || TryParseMebibytes(memory), "memory", kMemoryRule);
  fields.Range("gpu", &gpu, -1, kMaxCount, "devices; -1: not set");
  DescribeCounts(fields, "other", &other);
}

void ClusterConfig::QueueConfig::Describe(ConfigFields& fields) {
  fields.Section("guaranteed", &guaranteed, "its own whenever it needs it");
  fields.Section("limit", &limit, "the most that it may use, borrowing included");
  fields.Field("parent", &parent,
               "another queue, without jobs: what is guaranteed to its queues is lent among them "
               "first; empty: none");
  DescribeFairShare(fields, &fair_share_half_life);
  DescribeRights(fields, rights, /*namespaces=*/false);
}

void ClusterConfig::UserConfig::Describe(ConfigFields& fields) {
  fields.Range("max_gpus", &max_gpus, -1, kMaxCount, "of running jobs; -1: no cap");
}

void ClusterConfig::SchedulingConfig::Describe(ConfigFields& fields) {
  DescribeDuration(fields, "min_between_resizes", &min_between_resizes,
                   "an elastic job grows no sooner than this after a start or resize");
  DescribeDuration(fields, "max_checkpoint_interval", &max_checkpoint_interval,
                   "jobs on spot nodes are asked for a checkpoint at least this often");
  fields.Require(TryParseMilliseconds(max_checkpoint_interval).value_or(1) > 0,
                 "max_checkpoint_interval", "must be more than 0");
  DescribeDuration(fields, "overdue_after", &overdue_after,
                   "jobs that have waited longer than this plus four times their running time go "
                   "before others of their priority, one at a time");
  fields.Choice("order", &order, {"least_attained_service", kGittins, kFirstCome},
                "for jobs of equal priority: those that have run least go first, and may preempt "
                "others that save their work; gittins: the same with predicted run "
                "times; first_come: in order of submission");
  fields.Field("service_levels", &service_levels,
               "running times at which a job counts as having run more");
  TimeMs last = 0;
  for (const std::string& level : service_levels) {
    const TimeMs time = TryParseMilliseconds(level).value_or(0);
    fields.Require(time > last, "service_levels",
                   fmt::format("has '{}': they must be durations such as 30m or 4h, each longer "
                               "than the one before",
                               level));
    last = time;
  }
}

void ClusterConfig::LimitsConfig::Describe(ConfigFields& fields) {
  fields.Range("max_priority", &max_priority, -kMaxPriority, kMaxPriority,
               "of a job in a queue that does not say max_priority itself");
  fields.Range("max_pending_jobs", &max_pending_jobs, 0, kMaxCount, "of one user");
  fields.Field("max_pending_specs", &max_pending_specs,
               "total size of one user's pending job specifications, environments included: "
               "64MiB");
  fields.Require(TryParseMebibytes(max_pending_specs).has_value(), "max_pending_specs",
                 kMemoryRule);
  fields.Field("not_preemptible", &not_preemptible, "they may submit jobs with preemptible: false");
  fields.Field("grand_challenge", &grand_challenge, "they may submit grand challenges");
}

void ClusterConfig::RetentionConfig::Describe(ConfigFields& fields) {
  DescribeDuration(fields, "keep_ended_for", &keep_ended_for,
                   "then a job and its directory are removed, except its usage; 0s: forever");
  DescribeDuration(fields, "keep_output_for", &keep_output_for,
                   "likewise, of a job whose directory has nothing but its workers' output: "
                   "no file in run, checkpoints or artifacts; 0s: forever");
  fields.Range("keep_attempts", &keep_attempts, 1, kMaxCount,
               "newest attempts of a job that has not ended; logs of older ones are removed");
}

int64_t ClusterConfig::RetentionConfig::keep_ended_ms() const { return AsRead(keep_ended_for); }

int64_t ClusterConfig::RetentionConfig::keep_output_ms() const { return AsRead(keep_output_for); }

void ClusterConfig::NodeHealthConfig::Describe(ConfigFields& fields) {
  DescribeDuration(fields, "early_failure", &early_failure,
                   "a job that fails sooner than this after its start avoids the node");
  fields.Range("suspect_after", &suspect_after, 2, kMaxCount,
               "jobs that fail so on a node, of several users or such that then ran elsewhere, "
               "make it suspected");
  DescribeDuration(fields, "suspect_for", &suspect_for,
                   "nothing starts on a suspected node for this long; 0s: never suspect any");
  fields.Field("check", &check,
               "a command that is run for each node, also while jobs run there; while it fails, "
               "nothing starts there");
  fields.Require(check.empty() || !check[0].empty(), "check", "must name a program");
  DescribeDuration(fields, "check_interval", &check_interval, "between two checks of a node");
  DescribeDuration(fields, "check_timeout", &check_timeout, "a check that takes longer has failed");
  for (const auto& [key, text] :
       {std::pair{"check_interval", &check_interval}, {"check_timeout", &check_timeout}})
    fields.Require(TryParseMilliseconds(*text).value_or(1) > 0, key, "must be more than 0");
}

int64_t ClusterConfig::NodeHealthConfig::early_failure_ms() const { return AsRead(early_failure); }
int64_t ClusterConfig::NodeHealthConfig::suspect_for_ms() const { return AsRead(suspect_for); }
int64_t ClusterConfig::NodeHealthConfig::check_interval_ms() const {
  return AsRead(check_interval);
}
int64_t ClusterConfig::NodeHealthConfig::check_timeout_ms() const { return AsRead(check_timeout); }

void ClusterConfig::DiskConfig::Describe(ConfigFields& fields) {
  fields.Field("keep_free", &keep_free,
               "while less is free in the state directory, no job starts or is accepted; 0: never "
               "look");
  fields.Require(TryParseMebibytes(keep_free).has_value(), "keep_free", kMemoryRule);
  fields.Field("max_per_job", &max_per_job,
               "a job whose files there take more is killed: 200GiB; empty: no limit");
  fields.Require(max_per_job.empty() || TryParseMebibytes(max_per_job).value_or(0) > 0,
                 "max_per_job", kMemoryRule);
}

int64_t ClusterConfig::DiskConfig::keep_free_bytes() const {
  return ParseMebibytes(keep_free) << 20;
}
int64_t ClusterConfig::DiskConfig::max_per_job_mib() const {
  return max_per_job.empty() ? 0 : ParseMebibytes(max_per_job);
}

void ClusterConfig::CgroupsConfig::Describe(ConfigFields& fields) {
  fields.Field("hold", &hold,
               "each job's processes are in a control group, where the daemon may make some, so "
               "that all can be ended");
  fields.Field("cpu", &cpu, "a job gets no more CPU time than its workers request");
  fields.Field("memory", &memory,
               "the kernel kills processes of a job that need more memory than its workers "
               "request, counting the page cache that they cannot do without");
  fields.Field("parent", &parent,
               "a group of cgroup2, without processes of its own, for the groups of jobs; empty: "
               "the daemon's own");
  fields.Require(parent.empty() || parent.starts_with('/'), "parent", "must be an absolute path");
}

void ClusterConfig::Describe(ConfigFields& fields) {
  DescribeTopology(fields, &topology);
  fields.Map("pools", &pools, "nodes of one machine type each");
  fields.Require(!pools.empty(), "pools",
                 "must have at least one: {own: {nodes: 4, resources: {cpu: 32, gpu: 8}}}");
  RequireNames(fields, "pools", "pool", IsName, pools);
  for (const auto& [name, pool] : pools) {
    const std::string wrong = WrongDomains(pool, topology);
    fields.Require(wrong.empty(), "pools", fmt::format("has {} with {}", name, wrong));
  }
  fields.Map("queues", &queues, "if there are none: one queue, default, without quota");
  RequireNames(fields, "queues", "queue", IsName, queues);
  fields.Map("users", &users, "caps, such as {ann: {max_gpus: 8}}; other users have none");
  RequireNames(fields, "users", "user", IsUserName, users);
  fields.Map("worker_classes", &worker_classes,
             "sizes to which worker requests are rounded up; empty: no rounding");
  RequireNames(fields, "worker_classes", "worker class", IsName, worker_classes);
  fields.Field("budget_per_hour", &budget_per_hour, "for nodes of priced pools; -1: no limit");
  fields.Require(budget_per_hour == -1 || (budget_per_hour >= 0 && budget_per_hour <= 1e12),
                 "budget_per_hour", "must not be negative, except -1 for no limit");
  fields.Section("scheduling", &scheduling, "timing of the scheduler");
  fields.Section("limits", &limits, "for users other than root and the daemon's own");
  fields.Section("retention", &retention, "how long ended jobs and attempts are kept");
  fields.Section("node_health", &node_health, "nodes that fail the jobs that start on them");
  fields.Section("disk", &disk, "the file system of the daemon's state directory");
  fields.Section("cgroups", &cgroups, "control groups of jobs");
  DescribeDuration(fields, "artifacts_timeout", &artifacts_timeout,
                   "for copying and uploading what a job leaves; what remains then is not copied");
  fields.Require(TryParseMilliseconds(artifacts_timeout).value_or(1) > 0, "artifacts_timeout",
                 "must be more than 0");
  fields.Field("enforce_memory", &enforce_memory,
               "kill a worker that uses more than its resources.memory; 0 is no limit");
  fields.Field("simulated", &simulated,
               "the nodes stand in for others: they may have more GPUs than this machine, and each "
               "numbers its GPUs from 0");
}

int64_t ClusterConfig::artifacts_timeout_ms() const {
  const std::optional<int64_t> given = TryParseMilliseconds(artifacts_timeout);
  CHECK_MSG(given.has_value(), "the configuration has not been read");
  return *given;
}

ClusterConfig ReadClusterConfig(const std::string& path, std::span<const std::string> overrides) {
  ClusterConfig config;
  const auto describe = [&](ConfigFields& fields) { config.Describe(fields); };
  ReadConfigFile(path, overrides, describe);
  // Errors that only show in the combination of fields are errors of the file too.
  try {
    MakeSnapshot(config, 0);
  } catch (const Error& error) {
    throw error.WithContext(path);
  }
  return config;
}

void RequireGpus(const ClusterConfig& config, int64_t machine_gpus) {
  if (config.simulated) return;
  int64_t gpus = 0;
  std::string of;
  for (const auto& [name, pool] : config.pools) {
    if (pool.resources.gpu == 0) continue;
    const int nodes = TryParseRange(pool.nodes).value().max;
    gpus += nodes * pool.resources.gpu;
    of += fmt::format("{}{} of {} in {}", of.empty() ? "" : ", ", Counted(nodes, "node"),
                      pool.resources.gpu, name);
  }
  if (gpus <= machine_gpus) return;
  Fail(ErrorCode::kConfig,
       "the nodes have {} together ({}), but this machine has {}: give them fewer, or let them "
       "stand in for other machines (simulated: true, or --simulated without a file)",
       Counted(gpus, "GPU"), of, machine_gpus);
}

ScheduleOptions ScheduleOptionsOf(const ClusterConfig& config) {
  ScheduleOptions options;
  const ClusterConfig::SchedulingConfig& from = config.scheduling;
  const std::pair<const std::string&, TimeMs&> durations[] = {
      {from.min_between_resizes, options.min_between_resizes_ms},
      {from.max_checkpoint_interval, options.max_checkpoint_interval_ms},
      {from.overdue_after, options.overdue_after_ms}};
  for (const auto& [text, value] : durations) {
    const std::optional<int64_t> given = TryParseMilliseconds(text);
    CHECK_MSG(given.has_value(), "the configuration has not been read");
    value = *given;
  }
  options.levels.thresholds_ms.clear();
  options.levels.gittins = from.order == kGittins;
  if (from.order != kFirstCome)
    for (const std::string& level : from.service_levels)
      options.levels.thresholds_ms.push_back(TryParseMilliseconds(level).value());
  return options;
}

std::string PrintClusterConfig(ClusterConfig config, bool with_docs) {
  return PrintConfig([&](ConfigFields& fields) { config.Describe(fields); }, with_docs);
}

}  // namespace renzan::cluster::spec
