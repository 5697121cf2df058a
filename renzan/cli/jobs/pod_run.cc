// renzan pod-run -- COMMAND [ARGS...]

#include "renzan/cluster/pod/pod_run.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/base/process/child.h"
#include "renzan/cli/command_line.h"
#include "renzan/cli/verbs.h"
#include "renzan/storage/upload_files.h"

namespace renzan {
namespace {

struct PodRunFlags {
  std::vector<std::string> words;  // the command, as CLI11 has changed it (see WordsAfterDashes)
  std::optional<double> grace_seconds;
  double wait_for_master = cluster::pod::MasterWait().limit_seconds;
};

void Upload(const std::string& path, const std::string& to, const std::function<bool()>& stop) {
  const UploadSource source{path, ""};
  const Uploaded done = UploadFiles({&source, 1}, to, stop);
  LogInfo("uploaded {} to {}: {}", path, to, Counted(done.files, "file"));
}

int Run(const PodRunFlags& flags) {
  SetLogPrefix("pod-run: ");
  const std::vector<std::string> command = WordsAfterDashes();
  if (command.empty())
    Fail(ErrorCode::kUsage, "no command: it goes after --, as in renzan pod-run -- {}",
         flags.words.empty() ? "python3 train.py" : fmt::format("{}", fmt::join(flags.words, " ")));
  return cluster::pod::PodRun({.command = command,
                               .environment = OwnEnvironment(),
                               .grace_seconds = flags.grace_seconds,
                               .master = {.limit_seconds = flags.wait_for_master},
                               .upload = Upload});
}

}  // namespace

void AddPodRunVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand(
      "pod-run", "Run a command as a worker in a pod (a container's entry point)");
  const auto flags = std::make_shared<PodRunFlags>();
  verb->add_option("command", flags->words, "The command and its arguments, after --");
  verb->add_option("--grace", flags->grace_seconds,
                   "Seconds from SIGTERM to SIGKILL; default: $RENZAN_GRACE_SECONDS")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--wait-for-master", flags->wait_for_master,
                   "Seconds to wait until $MASTER_ADDR resolves, in a gang of several; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->footer(
      "Keeps the launch contract in a container on Kubernetes: RENZAN_RUN_DIR, stop.json before\n"
      "SIGTERM, SIGUSR1 for a checkpoint when the annotation renzan.dev/checkpoint-request "
      "changes\n"
      "(as the file checkpoint-request in $RENZAN_POD_INFO, default /etc/renzan/pod), and a\n"
      "termination message in $RENZAN_TERMINATION_LOG, default /dev/termination-log.\n"
      "With RENZAN_UPLOAD_TO=s3://BUCKET/PREFIX the command's output and the directory\n"
      "$RENZAN_ARTIFACTS are copied there when it has ended, by worker 0 also the run directory.\n"
      "Signals are passed on to the command, and its exit status is that of pod-run: 128 + signal\n"
      "if one ended it, 126 or 127 if it cannot be started, 75 if it was stopped before it "
      "started.\n"
      "Examples:\n"
      "  renzan pod-run -- renzan train config.yaml\n"
      "  renzan pod-run --wait-for-master 60 -- python3 train.py --epochs 3");
  verb->callback([flags, &exit_status] { exit_status = Run(*flags); });
}

}  // namespace renzan
