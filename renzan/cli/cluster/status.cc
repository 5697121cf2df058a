// renzan cluster status

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/clock.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/cluster/daemon_access.h"
#include "renzan/cli/cluster/verbs.h"
#include "renzan/cli/text/amounts_text.h"
#include "renzan/cli/text/table.h"

namespace renzan {
namespace {

using Json = Document;

struct StatusFlags {
  ClusterFlags cluster;
  bool json = false;
};

// "4 ready, 1 draining" of {"ready": 4, "draining": 1, "gone": 0}.
std::string Counts(const Json& counts) {
  std::vector<std::string> words;
  for (const auto& [word, count] : counts.items())
    if (count != 0) words.push_back(fmt::format("{} {}", count.dump(), word));
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

std::string AmountText(const std::string& kind, const Json& amount) {
  return kind == "memory" ? MebibytesText(amount.get<int64_t>()) : NumberText(amount.get<double>());
}

// "16 gpu, 64GiB memory" of {"cpu": 0, "gpu": 16, "memory": 65536}. `with_zeros`: a limit of 0 must
// be printed.
std::string Amounts(const Json& amounts, bool with_zeros = false) {
  std::vector<std::string> words;
  for (const auto& [kind, amount] : amounts.items())
    if (!amount.is_null() && (with_zeros || amount != 0))
      words.push_back(fmt::format("{} {}", AmountText(kind, amount), kind));
  return fmt::format("{}", fmt::join(words, ", "));
}

// "ann, bob, group vision" of who may use a queue.
std::string Members(const Json& members) {
  if (members.is_null()) return "everybody";
  std::vector<std::string> names;
  for (const auto& [list, prefix] :
       {std::pair{"users", ""}, {"groups", "group "}, {"namespaces", "namespace "}})
    for (const Json& name : members.at(list)) names.push_back(prefix + name.get<std::string>());
  return names.empty() ? "nobody" : fmt::format("{}", fmt::join(names, ", "));
}

void PrintQueues(const Json& queues) {
  Table table({{"queue"},
               {"guaranteed"},
               {"limit"},
               {"used"},
               {"borrowed"},
               {"pending", kRight},
               {"running", kRight},
               {"max priority", kRight},
               {"members"}});
  for (const Json& queue : queues)
    table.Add({queue.at("name").get<std::string>() +
                   (queue.value("parent", Json()).is_string()
                        ? fmt::format(" of {}", queue.at("parent").get<std::string>())
                        : "") +
                   (queue.at("removed") ? " (removed)" : ""),
               Amounts(queue.at("guaranteed")), Amounts(queue.at("limit"), true),
               Amounts(queue.at("used")), Amounts(queue.at("borrowed")), queue.at("pending").dump(),
               queue.at("running").dump(),
               queue.contains("max_priority") ? queue.at("max_priority").dump() : "",
               Members(queue.value("members", Json()))});
  fmt::print("\n{}", table.Text());
}

// Prints nothing unless nodes cost something or can be interrupted.
void PrintPools(const Json& pools) {
  Table table({{"pool"},
               {"nodes", kRight},
               {"price/h", kRight},
               {"node hours", kRight},
               {"interruptions", kRight},
               {"per node and hour", kRight}});
  bool any = false;
  for (const Json& pool : pools) {
    any |= pool.at("price_per_hour") > 0 || pool.at("interruptions_per_hour") > 0;
    table.Add(
        {pool.at("name"), pool.at("nodes").dump(),
         NumberText(pool.at("price_per_hour").get<double>()),
         pool.at("node_hours").is_null() ? "" : NumberText(pool.at("node_hours").get<double>()),
         pool.at("interruptions").is_null() ? "" : pool.at("interruptions").dump(),
         fmt::format("{:.3g}", pool.at("interruptions_per_hour").get<double>())});
  }
  if (any) fmt::print("\n{}", table.Text());
}

// Prints who answers: a daemon, or an API server and the controller.
void PrintWhoAnswers(const Json& status) {
  if (status.contains("server")) {
    const Json& leader = status.at("leader");
    fmt::print("server  {}\nleader  {}\n", status.at("server").get<std::string>(),
               leader.is_null() ? "not known" : leader.get<std::string>());
    return;
  }
  const int64_t now = SystemClock().UnixMs(), started = status.at("started");
  fmt::print("renzan {}, process {}, up since {} ({})\nstate   {}\nsocket  {}\n",
             status.at("version").get<std::string>(), status.at("pid").dump(),
             LocalTimeText(started, now), DurationText(now - started),
             status.at("state_dir").get<std::string>(), status.at("socket").get<std::string>());
}

void PrintUsers(const Json& users) {
  if (users.empty()) return;
  Table table({{"user"}, {"gpus", kRight}, {"cap", kRight}});
  for (const Json& user : users)
    table.Add({user.at("name"), user.at("gpus").dump(),
               user.at("max_gpus").is_null() ? "" : user.at("max_gpus").dump()});
  fmt::print("\n{}", table.Text());
}

void Print(const StatusFlags& flags, const Json& status) {
  if (flags.json) return PrintDocument(status);
  PrintWhoAnswers(status);
  fmt::print("nodes   {}\njobs    {}\n", Counts(status.at("nodes")), Counts(status.at("jobs")));
  if (status.contains("history"))
    fmt::print("history {}; {}\n", HistoryText(status.at("history")),
               RetentionText(status.at("history")));
  fmt::print("\n");
  if (status.contains("trouble"))
    fmt::print(
        "NOTHING STARTS, STOPS OR ENDS: the daemon cannot record changes ({}). It continues "
        "once it can\n\n",
        status.at("trouble").get<std::string>());
  if (status.contains("disk"))
    fmt::print("DISK NEARLY FULL: {}\n\n", status.at("disk").at("nearly_full").get<std::string>());
  if (status.contains("violation"))
    fmt::print(
        "SOME JOBS MAY NOT BE STARTED OR STOPPED: decisions of the scheduler are invalid ({}). "
        "Please "
        "report this with the output of `renzan cluster status --json`\n\n",
        status.at("violation").get<std::string>());
  for (const Json& fault : status.value("faults", Json::array()))
    fmt::print("FAULT: {} (decisions that involve it are not executed)\n\n",
               fault.get<std::string>());
  Table resources({{"resource"}, {"used", kRight}, {"of", kRight}});
  for (const Json& resource : status.at("resources")) {
    const std::string kind = resource.at("name");
    resources.Add(
        {kind, AmountText(kind, resource.at("used")), AmountText(kind, resource.at("capacity"))});
  }
  fmt::print("{}", resources.Text());
  PrintPools(status.at("pools"));
  PrintQueues(status.at("queues"));
  PrintUsers(status.at("users"));
}

void Status(const StatusFlags& flags) {
  const Json status = BackendOf(flags.cluster)->Status();
  Print(flags, status);
  FailForUnreadable(status);
}

}  // namespace

void AddClusterStatusVerb(CLI::App& cluster) {
  CLI::App* verb = cluster.add_subcommand("status", "Show nodes, jobs, queues and users");
  const auto flags = std::make_shared<StatusFlags>();
  verb->add_flag("--json", flags->json, "Print JSON");
  AddClusterChoice(*verb, flags->cluster);
  verb->footer("Example: renzan cluster status");
  verb->callback([flags] { Status(*flags); });
}

}  // namespace renzan
