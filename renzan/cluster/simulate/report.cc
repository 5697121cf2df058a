#include "renzan/cluster/simulate/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "renzan/base/counted.h"

namespace renzan::cluster::simulate {
namespace {

using Json = nlohmann::ordered_json;

struct Line {
  std::string name;
  std::function<std::string(const Metrics&)> cell;
};

std::string Percent(double share) { return fmt::format("{:.2f} %", share * 100); }
std::string GpuHours(double seconds) { return fmt::format("{:.1f}", seconds / 3600); }

std::vector<Line> DistributionLines(const std::string& name,
                                    const std::function<Distribution(const Metrics&)>& of) {
  const auto line = [&](const char* what, double Distribution::*value) {
    return Line{fmt::format("{}, {}", name, what),
                [of, value](const Metrics& metrics) { return FormatSeconds(of(metrics).*value); }};
  };
  return {line("mean", &Distribution::mean), line("p50", &Distribution::p50),
          line("p90", &Distribution::p90), line("p99", &Distribution::p99)};
}

std::vector<Line> WaitingBySize(const Metrics& first) {
  std::vector<Line> lines;
  for (size_t place = 0; place < first.by_size.size(); ++place)
    lines.push_back(
        {fmt::format("waiting, {}, mean / p99", Counted(first.by_size[place].name, "GPU")),
         [place](const Metrics& metrics) {
           const Distribution& waiting = metrics.by_size[place].waiting;
           return FormatSeconds(waiting.mean) + " / " + FormatSeconds(waiting.p99);
         }});
  return lines;
}

std::vector<Line> OtherLines() {
  const auto count = [](const char* name, int64_t Metrics::*value) {
    return Line{name, [value](const Metrics& metrics) { return std::to_string(metrics.*value); }};
  };
  const auto share = [](const char* name, double Metrics::*value) {
    return Line{name, [value](const Metrics& metrics) { return Percent(metrics.*value); }};
  };
  const auto hours = [](const char* name, double Metrics::*value) {
    return Line{name, [value](const Metrics& metrics) { return GpuHours(metrics.*value); }};
  };
  return {share("utilisation", &Metrics::utilisation),
          share("occupancy until last submission", &Metrics::occupancy),
          share("idle while jobs wait", &Metrics::idle_while_waiting),
          share("fragmented share of that", &Metrics::fragmentation),
          count("starts", &Metrics::starts),
          count("preemptions", &Metrics::preemptions),
          count("most preemptions of a job", &Metrics::most_preemptions_of_a_job),
          count("left draining nodes", &Metrics::drains),
          count("node failures of jobs", &Metrics::node_failures),
          count("resizes", &Metrics::resizes),
          count("failures of jobs", &Metrics::failures),
          count("jobs that failed for good", &Metrics::failed_jobs),
          count("deadlocks", &Metrics::deadlocks),
          hours("useful GPU hours", &Metrics::useful_gpu_s),
          hours("lost and repeated GPU hours", &Metrics::lost_gpu_s),
          share("lost and repeated", &Metrics::lost_share),
          share("overhead", &Metrics::overhead_share),
          share("both, largest of a job", &Metrics::largest_share_of_a_job),
          count("nodes bought", &Metrics::nodes_bought),
          count("nodes failed", &Metrics::nodes_failed),
          {"cost", [](const Metrics& metrics) { return fmt::format("{:.2f}", metrics.cost); }},
          count("cycles", &Metrics::cycles)};
}

std::vector<Line> Lines(const Metrics& first) {
  std::vector<Line> lines = {
      {"jobs", [](const Metrics& metrics) { return std::to_string(metrics.jobs); }},
      {"rejected: never fit",
       [](const Metrics& metrics) { return std::to_string(metrics.rejected); }},
      {"never ended", [](const Metrics& metrics) { return std::to_string(metrics.never_ended); }},
      {"makespan", [](const Metrics& metrics) { return FormatSeconds(metrics.makespan_s); }}};
  const auto add = [&](const std::vector<Line>& more) {
    lines.insert(lines.end(), more.begin(), more.end());
  };
  add(DistributionLines("completion", [](const Metrics& metrics) { return metrics.completion; }));
  add(DistributionLines("waiting", [](const Metrics& metrics) { return metrics.waiting; }));
  add(WaitingBySize(first));
  lines.push_back({"waited longest: job", [](const Metrics& metrics) {
                     return std::to_string(metrics.longest_waiting_job);
                   }});
  add(OtherLines());
  return lines;
}

Json ToJson(const Distribution& distribution) {
  return {{"count", distribution.count}, {"mean_s", distribution.mean},
          {"p50_s", distribution.p50},   {"p90_s", distribution.p90},
          {"p99_s", distribution.p99},   {"max_s", distribution.max}};
}

Json ToJson(const std::string& policy, const Metrics& metrics) {
  Json by_size = Json::array();
  for (const Metrics::SizeClass& size : metrics.by_size)
    by_size.push_back({{"gpus", size.name},
                       {"waiting", ToJson(size.waiting)},
                       {"completion", ToJson(size.completion)}});
  return {{"policy", policy},
          {"jobs", metrics.jobs},
          {"rejected", metrics.rejected},
          {"never_ended", metrics.never_ended},
          {"makespan_s", metrics.makespan_s},
          {"completion", ToJson(metrics.completion)},
          {"waiting", ToJson(metrics.waiting)},
          {"by_size", by_size},
          {"longest_waiting_job", metrics.longest_waiting_job},
          {"utilisation", metrics.utilisation},
          {"occupancy", metrics.occupancy},
          {"idle_while_waiting", metrics.idle_while_waiting},
          {"fragmentation", metrics.fragmentation},
          {"starts", metrics.starts},
          {"preemptions", metrics.preemptions},
          {"most_preemptions_of_a_job", metrics.most_preemptions_of_a_job},
          {"drains", metrics.drains},
          {"node_failures", metrics.node_failures},
          {"resizes", metrics.resizes},
          {"failures", metrics.failures},
          {"failed_jobs", metrics.failed_jobs},
          {"checkpoints_requested", metrics.checkpoints_requested},
          {"deadlocks", metrics.deadlocks},
          {"useful_gpu_s", metrics.useful_gpu_s},
          {"lost_gpu_s", metrics.lost_gpu_s},
          {"lost_share", metrics.lost_share},
          {"overhead_gpu_s", metrics.overhead_gpu_s},
          {"overhead_share", metrics.overhead_share},
          {"largest_share_of_a_job", metrics.largest_share_of_a_job},
          {"nodes_bought", metrics.nodes_bought},
          {"nodes_failed", metrics.nodes_failed},
          {"cost", metrics.cost},
          {"cycles", metrics.cycles}};
}

}  // namespace

std::string FormatSeconds(double seconds) {
  if (seconds < 100) return fmt::format("{:.1f}s", seconds);
  if (seconds < 6000) return fmt::format("{:.1f}m", seconds / 60);
  if (seconds < 4 * 86400) return fmt::format("{:.1f}h", seconds / 3600);
  return fmt::format("{:.1f}d", seconds / 86400);
}

std::string WriteTable(const NamedMetrics& policies) {
  if (policies.empty()) return "";
  const std::vector<Line> lines = Lines(policies.front().second);
  size_t name_width = 0;
  for (const Line& line : lines) name_width = std::max(name_width, line.name.size());
  std::vector<size_t> widths;
  std::string text(name_width, ' ');
  for (const auto& [policy, metrics] : policies) {
    size_t width = policy.size();
    for (const Line& line : lines) width = std::max(width, line.cell(metrics).size());
    widths.push_back(width);
    text += fmt::format("  {:>{}}", policy, width);
  }
  text += '\n';
  for (const Line& line : lines) {
    text += fmt::format("{:<{}}", line.name, name_width);
    for (size_t place = 0; place < policies.size(); ++place)
      text += fmt::format("  {:>{}}", line.cell(policies[place].second), widths[place]);
    text += '\n';
  }
  return text;
}

std::string WriteJson(const NamedMetrics& policies) {
  Json all = Json::array();
  for (const auto& [policy, metrics] : policies) all.push_back(ToJson(policy, metrics));
  return Json{{"policies", all}}.dump(2) + "\n";
}

}  // namespace renzan::cluster::simulate
