#include "renzan/cli/jobs/source.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/process/child.h"
#include "renzan/base/resource_limits.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/command_line.h"
#include "renzan/cli/shorthand.h"
#include "renzan/cli/working_directory.h"
#include "renzan/cluster/spec/job_spec.h"

namespace renzan {
namespace {

using cluster::JobText;
using Json = nlohmann::ordered_json;

// As JSON, which is YAML too: any text becomes a YAML string.
std::string Quoted(const Json& value) {
  try {
    return value.dump();
  } catch (const Json::exception&) {
    Fail(ErrorCode::kUsage, "an argument of the command line is not UTF-8: put it into a script");
  }
}

std::vector<Shorthand> ShorthandsIn(const JobFlags& flags) {
  std::vector<Shorthand> all;
  const auto put = [&](const char* flag, const char* key, const std::string& value,
                       const std::string& yaml) {
    if (!value.empty())
      all.push_back({fmt::format("{} {}", flag, value), fmt::format("{}={}", key, yaml)});
  };
  const auto add = [&](const char* flag, const char* key, const std::string& value) {
    put(flag, key, value, value);
  };
  const auto add_text = [&](const char* flag, const char* key, const std::string& value) {
    put(flag, key, value, Quoted(value));
  };
  add_text("--name", "name", flags.name);
  add_text("--queue", "queue", flags.queue);
  add("--priority", "priority", flags.priority);
  add_text("--replicas", "replicas", flags.replicas);
  add("--gpus", "resources.gpu", flags.gpus);
  add("--cpus", "resources.cpu", flags.cpus);
  add_text("--memory", "resources.memory", flags.memory);
  add("--retries", "retries", flags.retries);
  add_text("--timeout", "timeout", flags.timeout);
  add_text("--artifacts", "artifacts", flags.artifacts);
  Json nodes = Json::array();
  std::istringstream names(flags.exclude);
  for (std::string name; std::getline(names, name, ',');) nodes.push_back(name);
  put("--exclude", "constraints.exclude_nodes", flags.exclude, Quoted(nodes));
  add_text("--export", "export", flags.exported);
  if (flags.checkpoints) all.push_back({"--checkpoints", "checkpoint.on_stop=true"});
  return all;
}

std::vector<std::string> AllOverrides(const JobFlags& flags) {
  std::vector<std::string> overrides;
  for (const Shorthand& flag : ShorthandsIn(flags)) overrides.push_back(flag.override_text);
  overrides.insert(overrides.end(), flags.overrides.begin(), flags.overrides.end());
  return overrides;
}

bool LooksLikeAJobFile(const std::string& word) {
  return (word.ends_with(".yaml") || word.ends_with(".yml")) && FileExists(word);
}

// Of a script, or a program in machine code.
bool IsProgram(const std::string& path) {
  if (path.ends_with(".py") || path.ends_with(".sh")) return true;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4> first{};
  file.read(first.data(), first.size());
  const std::string_view text(first.data(), static_cast<size_t>(file.gcount()));
  return text.starts_with("#!") || text ==
                                       "\x7f"
                                       "ELF";
}

// Whether the text of a file has sections of a training at its top level, and no command.
bool IsTrainConfig(const std::string& yaml) {
  bool has_data = false, has_model = false;
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("command:")) return false;
    has_data |= line.starts_with("data:");
    has_model |= line.starts_with("model:");
  }
  return has_data && has_model;
}

// What is no job file gets its own message, because it is no YAML or has none of a job's keys.
std::string ReadJobFile(const CLI::App& verb, const std::string& path) {
  const std::string command = fmt::format("renzan {} -- ", verb.get_name());
  const bool is_yaml = path.ends_with(".yaml") || path.ends_with(".yml");
  if (!is_yaml && !FileExists(path))
    Fail(ErrorCode::kUsage, "{} is not a file: a command goes after --, as in {}{}", path, command,
         path);
  if (!is_yaml && IsProgram(path))
    Fail(ErrorCode::kUsage, "{} is a program: it goes after --, as in {}{}", path, command, path);
  std::string yaml = ReadFile(path);
  if (IsTrainConfig(yaml))
    Fail(ErrorCode::kUsage, "{} is a training's configuration: submit {}renzan train {}", path,
         command, path);
  return yaml;
}

JobText ReadJob(const CLI::App& verb, const JobFlags& flags) {
  // CLI11 keeps "--" in the remaining arguments.
  const std::vector<std::string> rest = verb.remaining();
  const bool is_command = std::find(rest.begin(), rest.end(), "--") != rest.end();
  const std::string help = fmt::format("(see renzan {} --help)", verb.get_name());
  if (flags.words.empty())
    Fail(ErrorCode::kUsage, "name a job file, or a command after -- {}", help);
  if (!is_command && flags.words.size() > 1)
    Fail(ErrorCode::kUsage,
         "more than one job file: a command goes after --, as in renzan {} -- {}", verb.get_name(),
         fmt::join(flags.words, " "));
  if (is_command && LooksLikeAJobFile(flags.words[0]))
    Fail(ErrorCode::kUsage, "{} is a job file: name it without -- {}", flags.words[0], help);

  JobText text{"", "command line", AllOverrides(flags)};
  if (is_command) {
    text.overrides.insert(text.overrides.begin(), "command=" + Quoted(WordsAfterDashes()));
  } else {
    text.source = flags.words[0];
    text.yaml = ReadJobFile(verb, text.source);
  }
  return text;
}

cluster::spec::Inherited OfThisProcess() {
  cluster::spec::Inherited inherited{.limits = OwnLimits(),
                                     .niceness = ::getpriority(PRIO_PROCESS, 0)};
  inherited.umask = ::umask(0);
  ::umask(inherited.umask);
  for (const std::string& entry : OwnEnvironment())
    if (const size_t equals = entry.find('='); equals != entry.npos && equals > 0)
      inherited.environment[entry.substr(0, equals)] = entry.substr(equals + 1);
  return inherited;
}

cluster::Submission SubmissionOf(JobText text, const JobFlags& flags) {
  return {.job = std::move(text),
          .directory = WorkingDirectory(),
          .image = flags.image,
          .pod_template = flags.pod_template,
          .inherited = OfThisProcess()};
}

}  // namespace

void AddJobFlags(CLI::App& verb, JobFlags& flags) {
  verb.add_option("job", flags.words, "The job's YAML file, or a command after --");
  verb.add_option("--set", flags.overrides, "Override one key: --set checkpoint.max_interval=5m")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  verb.add_option("--name", flags.name, "Name of the job; default: the program's name");
  verb.add_option("--queue", flags.queue, "Queue of the job; default: default");
  verb.add_option("--priority", flags.priority, "Jobs with higher priority go first");
  verb.add_option("--replicas", flags.replicas, "Number of workers: 4, or 2..8 if elastic");
  verb.add_option("--gpus", flags.gpus, "GPUs of each worker");
  verb.add_option("--cpus", flags.cpus, "CPU cores of each worker");
  verb.add_option("--memory", flags.memory, "Memory of each worker: 512MiB, 32GiB");
  verb.add_option("--exclude", flags.exclude, "Nodes that no worker runs on: own-3,own-5");
  verb.add_option("--retries", flags.retries, "Further attempts after failures");
  verb.add_option("--timeout", flags.timeout, "Limit of the total running time: 2h");
  verb.add_option("--artifacts", flags.artifacts, "A directory to keep when the job ends");
  verb.add_option("--export", flags.exported,
                  "Which of your variables the job gets: ALL (the default), NONE, or PATH,LANG")
      ->type_name("NAMES");
  verb.add_flag(
      "--checkpoints", flags.checkpoints,
      "The job checkpoints on SIGTERM and exits with 75, so it can be stopped without loss");
  verb.add_option("--image", flags.image, "Kubernetes: the image that has the program");
  verb.add_option("--pod-template", flags.pod_template,
                  "Kubernetes: a file with the rest of the pod (metadata, spec): volumes, "
                  "tolerations, secrets");
}

cluster::Submission SubmissionOf(const CLI::App& verb, const JobFlags& flags) {
  return SubmissionOf(ReadJob(verb, flags), flags);
}

cluster::Submission RepeatedSubmission(JobText earlier, const JobFlags& flags) {
  if (!flags.words.empty())
    Fail(ErrorCode::kUsage, "--again: {} already has a command; change its keys with --set",
         earlier.source);
  earlier.overrides = AllOverrides(flags);
  return SubmissionOf(std::move(earlier), flags);
}

void RethrowAsTyped(const Error& error, const JobFlags& flags) {
  RethrowAsTyped(error, ShorthandsIn(flags));
}

void PrintSubmitted(const cluster::Submitted& submitted) {
  Json answer = {{"id", submitted.id ? Json(*submitted.id) : Json()}, {"name", submitted.name}};
  if (!submitted.ns.empty()) answer["namespace"] = submitted.ns;
  PrintDocument(answer);
}

std::string PrintedJob(const CLI::App& verb, const JobFlags& flags) {
  JobText text;
  if (flags.words.empty()) {
    text = {"command: [PROGRAM]", "command line", AllOverrides(flags)};
  } else {
    text = ReadJob(verb, flags);
  }
  cluster::spec::JobSpec spec;
  try {
    spec = cluster::spec::ReadJobSpec(text.yaml, text.source, text.overrides);
  } catch (const Error& error) {
    RethrowAsTyped(error, flags);
  }
  // The default name is derived from the placeholder.
  if (flags.words.empty() && spec.name == spec.command[0]) spec.name.clear();
  return cluster::spec::PrintJobSpec(spec, /*with_docs=*/true);
}

}  // namespace renzan
