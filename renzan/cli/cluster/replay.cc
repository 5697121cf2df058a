// renzan cluster replay FILE

#include "renzan/cluster/record/replay.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "renzan/base/clock.h"
#include "renzan/base/counted.h"
#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/cli/at_least.h"
#include "renzan/cli/cluster/verbs.h"
#include "renzan/cli/text/table.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/record/causes.h"
#include "renzan/cluster/record/recording.h"

namespace renzan {
namespace {

using namespace cluster;
using record::Cycle;
using record::CycleView;
using Json = nlohmann::ordered_json;

constexpr size_t kMostNodesShown = 3;

struct ReplayFlags {
  std::string file, job;
  int64_t cycle = 0;  // 0: all
  bool json = false;
};

struct ReplayedCycle {
  int64_t number = 0;
  std::string difference;  // empty: none
  std::vector<Json> decisions;
};

// "7", "train" or "ads/train".
bool IsCalled(const std::string& job, JobId id, const record::JobName& name) {
  return job == std::to_string(id) ||
         (!name.name.empty() && (job == name.name || job == name.ns + "/" + name.name));
}

// Replays the cycles of a recording.
class Replay {
 public:
  explicit Replay(const ReplayFlags& flags) : flags_(flags) {}

  void Run() {
    record::ReadRecording(flags_.file, [this](const record::RecordingHeader& header, Cycle cycle) {
      header_ = header;
      ++read_;
      if (flags_.cycle == 0 || cycle.number == flags_.cycle) Take(std::move(cycle));
    });
    if (flags_.cycle != 0 && cycles_.empty())
      Fail(ErrorCode::kUsage, "{} has no cycle {}; without --cycle all {} are shown", flags_.file,
           flags_.cycle, read_);
    if (flags_.job.empty()) return;
    if (found_.empty())
      Fail(ErrorCode::kUsage, "no job of {} is called '{}'", flags_.file, flags_.job);
    if (found_.size() > 1) {
      std::string numbers;
      for (const JobId id : found_) numbers += fmt::format(" {}", id);
      Fail(ErrorCode::kUsage, "several jobs of {} are called '{}': give the number of one of{}",
           flags_.file, flags_.job, numbers);
    }
  }

  const record::RecordingHeader& header() const { return header_; }
  const std::vector<ReplayedCycle>& cycles() const { return cycles_; }
  // The last cycle that contains the job.
  const std::optional<Cycle>& last() const { return last_; }
  JobId job() const { return *found_.begin(); }

 private:
  void Take(Cycle cycle) {
    ReplayedCycle replayed{
        .number = cycle.number, .difference = record::DifferenceOnReplay(cycle), .decisions = {}};
    record::WithView(cycle, [&](const CycleView& view) {
      replayed.decisions =
          flags_.job.empty() ? record::DecisionsWithCauses(view, [](const Wait&) { return false; })
                             : About(view);
    });
    cycles_.push_back(std::move(replayed));
    if (is_in_it_) last_ = std::move(cycle);
  }

  // What was decided about the job, or for it.
  std::vector<Json> About(const CycleView& view) {
    is_in_it_ = false;
    std::set<JobId> ids;
    for (const Job& job : view.snapshot.jobs)
      if (IsCalled(flags_.job, job.id, view.name_of(job.id))) ids.insert(job.id);
    is_in_it_ = !ids.empty();
    found_.insert(ids.begin(), ids.end());
    std::vector<Json> about = record::DecisionsWithCauses(view, [&](const Wait& wait) {
      if (!ids.contains(wait.job)) return false;
      const bool is_news = flags_.cycle != 0 || last_wait_ != wait.reason;
      last_wait_ = wait.reason;
      return is_news;
    });
    std::erase_if(about, [&](const Json& decision) {
      const Json& cause = decision.at("cause");
      const Json& beneficiary = cause.contains("on_behalf_of") ? cause["on_behalf_of"] : Json();
      const bool is_about =
          decision.contains("job") && ids.contains(decision["job"]["id"].get<JobId>());
      return !is_about && (beneficiary.is_null() || !ids.contains(beneficiary["id"].get<JobId>()));
    });
    if (std::any_of(about.begin(), about.end(),
                    [](const Json& decision) { return decision["decision"] == "start"; }))
      last_wait_.reset();
    return about;
  }

  const ReplayFlags& flags_;
  record::RecordingHeader header_;
  int64_t read_ = 0;
  std::vector<ReplayedCycle> cycles_;
  std::set<JobId> found_;
  std::optional<WaitReason> last_wait_;
  bool is_in_it_ = false;
  std::optional<Cycle> last_;
};

std::string NodesText(const Json& decision) {
  if (!decision.contains("nodes")) return "";
  const Json& nodes = decision["nodes"];
  std::string text;
  for (size_t at = 0; at < std::min(nodes.size(), kMostNodesShown); ++at) {
    text += (at == 0 ? "" : ", ") + nodes[at]["node"].get<std::string>();
    if (nodes[at].contains("workers"))
      text += fmt::format(" ({})", nodes[at]["workers"].get<int>());
  }
  if (nodes.size() > kMostNodesShown)
    text += fmt::format(" and {} more", nodes.size() - kMostNodesShown);
  return text;
}

void PrintTable(const std::vector<ReplayedCycle>& cycles) {
  Table table({{"cycle", kRight}, {"time"}, {"decision"}, {"job"}, {"nodes"}, {"cause"}});
  size_t decisions = 0;
  for (const ReplayedCycle& cycle : cycles)
    for (const Json& decision : cycle.decisions) {
      ++decisions;
      table.Add({std::to_string(cycle.number), decision["time"].get<std::string>(),
                 decision["decision"].get<std::string>(),
                 decision.contains("job")    ? record::JobText(decision["job"])
                 : decision.contains("pool") ? "pool " + decision["pool"].get<std::string>()
                                             : "",
                 NodesText(decision), record::CauseText(decision)});
    }
  if (decisions > 0) fmt::print("{}", table.Text());
}

// The state of the job in that cycle.
Json ExplainIn(const Cycle& cycle, JobId id) {
  const Job& job = *cycle.snapshot.Find(id);
  Json explanation = {{"cycle", cycle.number}, {"id", id}};
  const std::vector<Start>& starts = cycle.decisions.starts;
  const bool starts_now = std::any_of(starts.begin(), starts.end(),
                                      [=](const Start& start) { return start.job == id; });
  if (job.state != JobState::kPending || starts_now) {
    const int workers = NumWorkers(job.placement);
    explanation["why"] =
        starts_now ? "it starts in this cycle" : "it has " + Counted(workers, "worker");
    return explanation;
  }
  const Explanation why = Explain(cycle.snapshot, id, {.scheduling = cycle.options});
  explanation["why"] = why.why;
  explanation["queue_position"] = why.queue_position;
  explanation["would_start_with"] = why.would_start_with;
  if (!why.ahead.empty()) explanation["ahead"] = why.ahead;
  if (why.estimated_start)
    explanation["estimated_wait_ms"] = *why.estimated_start - cycle.snapshot.now;
  if (why.estimated_start_p90)
    explanation["estimated_wait_p90_ms"] = *why.estimated_start_p90 - cycle.snapshot.now;
  if (!why.estimate_rests_on.empty()) explanation["estimate_rests_on"] = why.estimate_rests_on;
  return explanation;
}

void PrintExplanation(const Json& explanation) {
  fmt::print("in cycle {}: {}\n", explanation["cycle"].get<int64_t>(),
             explanation["why"].get<std::string>());
  if (!explanation.contains("queue_position")) return;
  fmt::print("position in the queue: {}\n", explanation["queue_position"].get<int>());
  if (explanation.contains("ahead"))
    fmt::print("ahead by fair share: {}\n", explanation["ahead"].get<std::string>());
  for (const Json& change : explanation["would_start_with"])
    fmt::print("would start {}\n", change.get<std::string>());
  if (!explanation.contains("estimated_wait_ms")) return;
  const auto duration = [&](const char* key) {
    return FormatDuration(explanation[key].get<TimeMs>() / kSecond);
  };
  fmt::print("starts in about {}{}; this rests on {}\n", duration("estimated_wait_ms"),
             explanation.contains("estimated_wait_p90_ms")
                 ? ", 9 times out of 10 within " + duration("estimated_wait_p90_ms")
                 : "",
             explanation.value("estimate_rests_on", ""));
}

int Run(const ReplayFlags& flags) {
  Replay replay(flags);
  replay.Run();
  Json explanation;
  if (!flags.job.empty()) explanation = ExplainIn(*replay.last(), replay.job());
  size_t different = 0;
  Json cycles = Json::array();
  for (const ReplayedCycle& cycle : replay.cycles()) {
    different += cycle.difference.empty() ? 0 : 1;
    if (flags.json)
      cycles.push_back({{"cycle", cycle.number},
                        {"same", cycle.difference.empty()},
                        {"difference", cycle.difference},
                        {"decisions", cycle.decisions}});
  }
  if (flags.json) {
    Json object = {{"program", replay.header().program},
                   {"writer", replay.header().writer},
                   {"same", different == 0},
                   {"cycles", std::move(cycles)}};
    if (!flags.job.empty()) object["explanation"] = explanation;
    fmt::print("{}\n", record::LineOf(object));
    return different == 0 ? 0 : 1;
  }
  PrintTable(replay.cycles());
  if (!flags.job.empty()) PrintExplanation(explanation);
  for (const ReplayedCycle& cycle : replay.cycles())
    if (!cycle.difference.empty()) {
      fmt::print("cycle {} now decides differently: {}\n", cycle.number, cycle.difference);
      break;
    }
  const size_t all = replay.cycles().size();
  if (different == 0)
    fmt::print("{} replayed: the same decisions\n", Counted(all, "cycle"));
  else
    fmt::print("other decisions in {} of {}, which {} recorded\n", different, Counted(all, "cycle"),
               replay.header().program);
  return different == 0 ? 0 : 1;
}

}  // namespace

void AddClusterReplayVerb(CLI::App& cluster, int& exit_status) {
  CLI::App* verb = cluster.add_subcommand(
      "replay", "Decide recorded scheduling cycles again, list and explain their decisions");
  const auto flags = std::make_shared<ReplayFlags>();
  verb->add_option("FILE", flags->file, "A recording")->required();
  verb->add_option("--explain", flags->job,
                   "Only decisions about this job, their causes, and its state in the last cycle")
      ->type_name("JOB");
  verb->add_option("--cycle", flags->cycle, "Only the cycle with this number")
      ->type_name("N")
      ->check(AtLeast(1));
  verb->add_flag("--json", flags->json, "Print JSON");
  verb->footer(
      "Recordings come from --record FILE of `renzan cluster kubernetes run`, `renzan cluster up`\n"
      "and `renzan simulate`, and from /debug/cycles of the first. Exits with 1 if this program\n"
      "decides anything differently.\n"
      "Example: renzan cluster replay cycles.zst --explain ads/train");
  verb->callback([flags, &exit_status] { exit_status = Run(*flags); });
}

}  // namespace renzan
