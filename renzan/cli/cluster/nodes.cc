// renzan nodes [cordon|drain|fail|restore NAME]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/clock.h"
#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/cli/cluster/daemon_access.h"
#include "renzan/cli/text/amounts_text.h"
#include "renzan/cli/text/table.h"
#include "renzan/cli/verbs.h"
#include "renzan/cluster/client/client.h"

namespace renzan {
namespace {

using Json = nlohmann::ordered_json;

struct NodesFlags {
  std::string socket, name, notice;
  bool json = false;
};

std::string State(const Json& node, int64_t now) {
  const std::string state = node.at("state");
  const Json& until = node.at("until");
  return until.is_null()
             ? state
             : fmt::format("{} until {}", state, LocalTimeText(until.get<int64_t>(), now));
}

// "12/32": used and available.
std::string Used(const Json& node, const char* kind, std::string text(const Json&)) {
  return fmt::format("{}/{}", text(node.at("used").at(kind)), text(node.at("capacity").at(kind)));
}

std::string Number(const Json& value) { return NumberText(value.get<double>()); }
std::string Memory(const Json& value) { return MebibytesText(value.get<int64_t>()); }

void List(const NodesFlags& flags) {
  const std::string answer = client::Client(EndpointOf(flags.socket)).Get("/v1/nodes");
  if (flags.json) return PrintAnswer(answer);
  Table table({{"name"},
               {"pool"},
               {"state"},
               {"cpu", kRight},
               {"memory", kRight},
               {"gpu", kRight},
               {"jobs"},
               {"labels"}});
  const int64_t now = SystemClock().UnixMs();
  const Json nodes = Json::parse(answer).at("nodes");
  for (const Json& node : nodes) {
    std::vector<std::string> jobs, labels;
    for (const Json& job : node.at("jobs")) jobs.push_back(job.dump());
    if (node.at("spot").get<bool>()) labels.push_back("spot");
    for (const auto& [key, value] : node.at("labels").items())
      labels.push_back(fmt::format("{}={}", key, value.get<std::string>()));
    table.Add({node.at("name"), node.at("pool"), State(node, now), Used(node, "cpu", Number),
               Used(node, "memory_mib", Memory), Used(node, "gpu", Number),
               fmt::format("{}", fmt::join(jobs, ",")), fmt::format("{}", fmt::join(labels, " "))});
  }
  fmt::print("{}", table.Text());
}

// Returns the daemon's response.
Json Act(const NodesFlags& flags, const std::string& action, const Json& body) {
  return Json::parse(
      client::Client(EndpointOf(flags.socket))
          .Post(fmt::format("/v1/nodes/{}/{}", client::EscapeUrl(flags.name), action),
                body.dump()));
}

void Drain(const NodesFlags& flags) {
  Json seconds;
  if (!flags.notice.empty()) {
    const std::optional<double> notice = ParseDuration(flags.notice);
    if (!notice)
      Fail(ErrorCode::kUsage, "--notice {}: must be a duration such as 120s or 2m", flags.notice);
    seconds = *notice;
  }
  Act(flags, "drain", {{"notice_seconds", seconds}});
  fmt::print("{}: draining{}\n", flags.name,
             seconds.is_null() ? "" : fmt::format(", goes away in {}", flags.notice));
}

CLI::App* AddActVerb(CLI::App& nodes, const char* action, const char* what, const char* footer,
                     std::shared_ptr<NodesFlags> flags) {
  CLI::App* verb = nodes.add_subcommand(action, what);
  verb->add_option("NAME", flags->name, "As shown by `renzan nodes`")->required();
  AddSocketOption(*verb, flags->socket);
  verb->footer(footer);
  return verb;
}

}  // namespace

void AddNodesVerb(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("nodes", "List nodes; cordon, drain or fail them");
  const auto flags = std::make_shared<NodesFlags>();
  verb->add_flag("--json", flags->json, "Print JSON");
  AddSocketOption(*verb, flags->socket);
  verb->require_subcommand(0, 1);
  verb->footer("Amounts are used/available.\nExample: renzan nodes");

  CLI::App* cordon =
      AddActVerb(*verb, "cordon", "Start no more workers on a node; running ones stay",
                 "Example: renzan nodes cordon own-3", flags);
  cordon->callback([flags] {
    Act(*flags, "cordon", Json::object());
    fmt::print("{}: cordoned\n", flags->name);
  });

  CLI::App* drain = AddActVerb(
      *verb, "drain", "Empty a node: jobs that save when stopped move elsewhere, others may finish",
      "With --notice, all jobs must leave.\nExample: renzan nodes drain spot-3 --notice 120s",
      flags);
  drain->add_option("--notice", flags->notice,
                    "Like a spot interruption notice: the node goes away after this time (120s)");
  drain->callback([flags] { Drain(*flags); });

  CLI::App* fail =
      AddActVerb(*verb, "fail", "Simulate a node failure: its workers are killed without notice",
                 "Example: renzan nodes fail spot-3", flags);
  fail->callback([flags] {
    Act(*flags, "fail", Json::object());
    fmt::print("{}: failed\n", flags->name);
  });

  CLI::App* restore = AddActVerb(*verb, "restore", "Bring a cordoned, drained or failed node back",
                                 "Example: renzan nodes restore spot-3", flags);
  restore->alias("uncordon");
  restore->callback([flags] {
    const bool done = Act(*flags, "restore", Json::object()).at("done");
    fmt::print("{}: ready{}\n", flags->name, done ? "" : " once its last worker has ended");
  });

  verb->callback([verb, flags] {
    if (verb->get_subcommands().empty()) List(*flags);
  });
}

}  // namespace renzan
