// renzan simulate --trace FILE | --sacct FILE | --generate jobs=...

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "renzan/base/build_id.h"
#include "renzan/base/clock.h"
#include "renzan/base/counted.h"
#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/staged.h"
#include "renzan/base/log.h"
#include "renzan/cli/at_least.h"
#include "renzan/cli/text/one_of.h"
#include "renzan/cli/verbs.h"
#include "renzan/cluster/record/recorder.h"
#include "renzan/cluster/simulate/generate.h"
#include "renzan/cluster/simulate/job_story.h"
#include "renzan/cluster/simulate/picture.h"
#include "renzan/cluster/simulate/report.h"
#include "renzan/cluster/simulate/sacct.h"
#include "renzan/cluster/simulate/trace.h"
#include "renzan/cluster/spec/cluster_config.h"
#include "renzan/data/text/input.h"

namespace renzan {
namespace {

using namespace cluster;
using namespace cluster::simulate;

struct SimulateOptions {
  std::string trace, sacct, columns, generate, cluster_file, svg;
  std::vector<std::string> policies = {"renzan"};
  int nodes = 56, gpus_per_node = 8;
  std::string quotas;
  size_t limit = 0;
  double checkpoint_share = 1;
  std::string save = "5s", restart = "30s";
  double interruptions_per_hour = -1;
  std::string notice = "0", min_between_cycles = "0";
  bool json = false;
  JobId explain = 0;  // 0: none
  std::string record;
  SimulatorOptions simulator;
};

TimeMs ReadDuration(const std::string& text, const char* option) {
  const std::optional<double> seconds = ParseDuration(text);
  if (!seconds || *seconds > 1e9)
    Fail(ErrorCode::kUsage, "{} {}: not a duration such as 120s, 10m or 1.5h", option, text);
  return static_cast<TimeMs>(*seconds * 1000);
}

// "60s", or "1s..60s".
TimeRange ReadTimeRange(const std::string& text, const char* option) {
  const size_t dots = text.find("..");
  const TimeMs least = ReadDuration(text.substr(0, dots), option);
  const TimeMs most = dots == text.npos ? least : ReadDuration(text.substr(dots + 2), option);
  if (least < 1 || most < least)
    Fail(ErrorCode::kUsage, "{} {}: not a time above 0, or a range such as 1s..60s", option, text);
  return {least, most};
}

// Nodes of one machine type, with four cores and 32 GiB per GPU.
spec::ClusterConfig SimpleCluster(int nodes, int gpus_per_node) {
  spec::ClusterConfig config;
  spec::ClusterConfig::PoolConfig& pool = config.pools["node"];
  pool.nodes = std::to_string(nodes);
  pool.resources.gpu = gpus_per_node;
  pool.resources.cpu = 4 * gpus_per_node;
  pool.resources.memory = fmt::format("{}GiB", 32 * gpus_per_node);
  return config;
}

Snapshot MakeCluster(const SimulateOptions& options, const spec::ClusterConfig& config) {
  Snapshot cluster = spec::MakeSnapshot(config, 0);
  if (options.interruptions_per_hour < 0) return cluster;
  for (Pool& pool : cluster.pools) {
    pool.spot = true;
    pool.interruptions_per_hour = options.interruptions_per_hour;
  }
  for (Node& node : cluster.nodes) node.spot = true;
  return cluster;
}

// Errors name --generate, which was typed, and not the override that its keys are.
GenerateOptions ReadGenerate(const std::string& text) {
  try {
    return ReadGenerateOptions(text);
  } catch (const Error& error) {
    std::string message = error.what();
    constexpr std::string_view kOverride = "--set ";
    if (message.starts_with(kOverride)) message.replace(0, kOverride.size(), "--generate ");
    throw Error(error.code(), message);
  }
}

Workload MakeWorkload(const SimulateOptions& options, const Snapshot& cluster) {
  if (!options.generate.empty()) return GenerateWorkload(ReadGenerate(options.generate), cluster);
  const TraceOptions trace{.gpus_per_node = LargestNodeGpus(cluster),
                           .share_of_one_gpu = ShareOfOneGpu(cluster),
                           .limit = options.limit,
                           .checkpoint_share = options.checkpoint_share,
                           .save_ms = ReadTimeRange(options.save, "--save"),
                           .restart_ms = ReadTimeRange(options.restart, "--restart"),
                           .seed = options.simulator.seed,
                           .columns = options.columns.empty()
                                          ? std::nullopt
                                          : std::optional(ReadTraceColumns(options.columns))};
  if (trace.gpus_per_node == 0)
    Fail(ErrorCode::kUsage, "the cluster has no GPUs, but the jobs of a trace request GPUs");
  const std::string& file = options.trace.empty() ? options.sacct : options.trace;
  LineReader lines({file});
  const NextLine next_line = [&](std::string_view* line) { return lines.Next(line); };
  return options.trace.empty() ? ReadSacct(next_line, file, trace)
                               : ReadTrace(next_line, file, trace);
}

// Records the cycles of Renzan's scheduler.
class RecordedPolicy : public SimulatedPolicy {
 public:
  RecordedPolicy(std::unique_ptr<SimulatedPolicy> policy, const ScheduleOptions& options)
      : policy_(std::move(policy)), options_(options), recorder_(Options()) {}

  PolicyOutput Decide(const PolicyInput& input) override {
    PolicyOutput output = policy_->Decide(input);
    recorder_.Take({++cycles_, options_, input.snapshot, output.decisions, no_names_});
    return output;
  }
  PolicyOutput DecideAgain(const PolicyInput& input) override {
    return policy_->DecideAgain(input);
  }
  bool IsScheduler() const override { return policy_->IsScheduler(); }
  bool ScalesPools() const override { return policy_->ScalesPools(); }

  void Write(const std::string& path) const {
    WriteOutputFile(path, recorder_.Recording());
    const record::RecorderCounts counts = recorder_.counts();
    LogInfo("{}: the last {} of {} that decided anything", path, counts.kept,
            Counted(counts.taken, "cycle"));
  }

 private:
  static record::RecorderOptions Options() {
    record::RecorderOptions options;
    options.program = fmt::format("renzan {} (build {})", RENZAN_VERSION, BuildId());
    options.writer = "simulate";
    options.waits = true;
    return options;
  }

  const std::unique_ptr<SimulatedPolicy> policy_;
  const ScheduleOptions options_;
  const std::function<record::JobName(JobId)> no_names_ = [](JobId) { return record::JobName(); };
  int64_t cycles_ = 0;
  record::Recorder recorder_;
};

void Report(const SimulateOptions& options, const NamedMetrics& metrics,
            const std::vector<std::string>& violations) {
  fmt::print("{}", options.json ? WriteJson(metrics) : WriteTable(metrics));
  for (const std::string& violation : violations) LogError("{}", violation);
  if (!violations.empty())
    Fail(ErrorCode::kSoftware,
         "the scheduler violated its invariants (see above); the same command reproduces this");
}

void RunSimulations(SimulateOptions options) {
  if (options.trace.empty() && options.sacct.empty() && options.generate.empty())
    Fail(ErrorCode::kUsage,
         "give a workload: --trace FILE, --sacct FILE or --generate jobs=1000,seed=1");
  if (!options.svg.empty() && options.policies.size() != 1)
    Fail(ErrorCode::kUsage, "--svg draws a single policy: use --policy instead of --compare");
  options.simulator.notice_ms = ReadDuration(options.notice, "--notice");
  options.simulator.min_between_cycles_ms =
      ReadDuration(options.min_between_cycles, "--min-between-cycles");
  const spec::ClusterConfig config = options.cluster_file.empty()
                                         ? SimpleCluster(options.nodes, options.gpus_per_node)
                                         : spec::ReadClusterConfig(options.cluster_file);
  if (options.explain != 0 && (options.policies.size() != 1 || options.json))
    Fail(ErrorCode::kUsage,
         "--explain prints text about a single policy: use --policy instead of --compare, and no "
         "--json");
  if (!options.record.empty() && options.policies != std::vector<std::string>{"renzan"})
    Fail(ErrorCode::kUsage, "--record works with the policy renzan only");
  for (const std::string& output : {options.record, options.svg})
    if (!output.empty()) CheckOutputFile(output);
  const ScheduleOptions scheduling = spec::ScheduleOptionsOf(config);
  std::vector<std::unique_ptr<SimulatedPolicy>> policies;
  for (const std::string& name : options.policies)
    policies.push_back(MakePolicy(name, options.simulator.seed, scheduling));
  Snapshot cluster = MakeCluster(options, config);
  const Workload workload = MakeWorkload(options, cluster);
  if (!options.quotas.empty() || options.cluster_file.empty())
    MakeQueues(workload, options.quotas == "proportional" ? Quotas::kProportional : Quotas::kNone,
               cluster);
  NamedMetrics metrics;
  std::vector<std::string> violations;
  for (size_t place = 0; place < policies.size(); ++place) {
    const std::string& name = options.policies[place];
    const double begin = SystemClock().MonotonicSeconds();
    const RecordedPolicy* recorded = nullptr;
    if (!options.record.empty()) {
      auto recording = std::make_unique<RecordedPolicy>(std::move(policies[place]), scheduling);
      recorded = recording.get();
      policies[place] = std::move(recording);
    }
    std::optional<JobStory> story;
    if (options.explain != 0)
      story.emplace(std::move(policies[place]), options.explain, scheduling);
    SimulatedPolicy& policy = story ? *story : *policies[place];
    const SimulationResult result = Simulate(cluster, workload, policy, options.simulator);
    LogInfo("{}: {}, {} in {:.1f} s", name, Counted(result.jobs.size(), "job"),
            Counted(result.totals.cycles, "cycle"), SystemClock().MonotonicSeconds() - begin);
    if (recorded != nullptr) recorded->Write(options.record);
    if (story) fmt::print("{}\n", story->Text(result));
    metrics.emplace_back(name, Measure(result));
    for (const std::string& violation : result.violations)
      violations.push_back(fmt::format("{}: {}", name, violation));
    if (!options.svg.empty())
      WriteOutputFile(options.svg,
                      DrawTimeline(result, fmt::format("{}, policy {}",
                                                       Counted(workload.size(), "job"), name)));
  }
  Report(options, metrics, violations);
}

void AddClusterOptions(CLI::App& verb, SimulateOptions& options) {
  const auto file =
      verb.add_option("--cluster", options.cluster_file,
                      "Pools, queues, users and scheduling, as for renzan cluster up");
  verb.add_option("--nodes", options.nodes, "Without --cluster: number of nodes")
      ->check(CLI::Range(1, 100000))
      ->excludes(file)
      ->capture_default_str();
  verb.add_option("--gpus-per-node", options.gpus_per_node, "Without --cluster: GPUs of each node")
      ->check(CLI::Range(1, 1024))
      ->excludes(file)
      ->capture_default_str();
  verb.add_option("--quotas", options.quotas,
                  "Replace the cluster's queues with the workload's: none (nothing guaranteed) or "
                  "proportional (all GPUs guaranteed, by share of GPU time)")
      ->check(OneOf({"none", "proportional"}));
  verb.add_option("--interruptions-per-hour", options.interruptions_per_hour,
                  "Make every node a spot node that is interrupted this often")
      ->check(CLI::NonNegativeNumber);
  verb.add_option("--notice", options.notice, "Notice before an interruption; 0: none")
      ->capture_default_str();
}

}  // namespace

void AddSimulateVerb(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("simulate", "Simulate a scheduling policy on a trace or synthetic jobs");
  const auto options = std::make_shared<SimulateOptions>();
  const auto trace = verb->add_option("--trace", options->trace,
                                      "Recorded jobs: CSV (timestamp,duration,num_gpus,gpu_time,"
                                      "cluster), plain, .gz or .zst");
  const auto sacct =
      verb->add_option("--sacct", options->sacct,
                       "Jobs of a Slurm cluster: what `sacct --allusers --allocations --parsable2 "
                       "--format=JobID,JobName,User,Account,Submit,ElapsedRaw,AllocTRES` prints, "
                       "plain, .gz or .zst");
  sacct->type_name("FILE")->excludes(trace);
  verb->add_option("--columns", options->columns,
                   "YAML that maps another CSV trace's columns: submitted, duration (or "
                   "duration_of), gpus, queue, user, name")
      ->type_name("FILE")
      ->needs(trace);
  const auto generate = verb->add_option(
      "--generate", options->generate,
      "Synthetic jobs: jobs=1000,seed=1,load=0.9,... (a wrong name lists the others)");
  generate->excludes(trace)->excludes(sacct);
  verb->add_option("--limit", options->limit, "Only the first of the recorded jobs")
      ->check(AtLeast(1))
      ->excludes(generate);
  verb->add_option("--checkpoint-share", options->checkpoint_share,
                   "Share of the recorded jobs that checkpoint")
      ->check(CLI::Range(0.0, 1.0))
      ->excludes(generate)
      ->capture_default_str();
  verb->add_option("--save", options->save,
                   "How long the recorded jobs take to save their work: 5s, or 1s..60s drawn for "
                   "each job")
      ->excludes(generate)
      ->capture_default_str();
  verb->add_option("--restart", options->restart,
                   "From a restart until a job is back where it stopped: 30s, or a range")
      ->excludes(generate)
      ->capture_default_str();
  AddClusterOptions(*verb, *options);
  const auto policy = verb->add_option_function<std::string>(
      "--policy", [options](const std::string& name) { options->policies = {name}; },
      "renzan (default), fifo (as Kueue's StrictFIFO), backfill (as Kueue's BestEffortFIFO), "
      "backfill-easy (as Slurm's backfill with exact run times), kubernetes (kube-scheduler "
      "without gang scheduling), las (least attained service, as Tiresias) or srpt-oracle "
      "(shortest remaining time first, with exact run times)");
  verb->add_option("--compare", options->policies, "Compare several policies")
      ->delimiter(',')
      ->excludes(policy);
  verb->add_option("--seed", options->simulator.seed, "Seed for interruptions and ties")
      ->capture_default_str();
  verb->add_option("--min-between-cycles", options->min_between_cycles,
                   "Shortest time between scheduling cycles")
      ->capture_default_str();
  verb->add_option(
          "--explain", options->explain,
          "Explain why this job waited, and for whom; jobs are numbered from 1 by submission")
      ->type_name("JOB")
      ->check(AtLeast(1));
  verb->add_option("--record", options->record,
                   "Record the cycles that decide anything, for `renzan cluster replay`")
      ->type_name("FILE");
  verb->add_flag("--json", options->json, "Print JSON, with exact values");
  verb->add_option("--svg", options->svg, "Draw running and pending jobs over time")
      ->type_name("FILE");
  verb->add_flag("--check", options->simulator.check,
                 "Validate the scheduler's decisions after every cycle (slow)");
  verb->footer(
      "Example:\n"
      "  renzan simulate --trace philly.csv.gz --nodes 56 --compare renzan,backfill,fifo\n"
      "  renzan simulate --generate jobs=2000,seed=7 --cluster cluster.yaml --quotas proportional "
      "\\\n"
      "    --interruptions-per-hour 0.05 --notice 120s --svg timeline.svg");
  verb->callback([options] { RunSimulations(*options); });
}

}  // namespace renzan
