// renzan checkpoint list|verify

#include "renzan/cli/train/checkpoint_list.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "renzan/base/bytes_text.h"
#include "renzan/base/clock.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/checkpoint/reader.h"
#include "renzan/checkpoint/text_or_null.h"
#include "renzan/cli/text/table.h"
#include "renzan/saving/model_directory.h"

namespace renzan {
namespace {

using Json = nlohmann::ordered_json;

struct CheckpointListOptions {
  std::string path;
  bool json = false;
};

std::string UtcOf(const CheckpointEntry& entry) {
  return FormatUtc(static_cast<double>(entry.unix_ms / 1000));
}

std::string Size(const CheckpointEntry& entry) {
  return BytesText(static_cast<int64_t>(entry.bytes));
}

Json ToJson(const CheckpointEntry& entry) {
  const bool readable = entry.kind.has_value();
  return {{"name", entry.name},
          {"path", entry.path},
          {"step", entry.step},
          {"time", readable ? Json(UtcOf(entry)) : Json(nullptr)},
          {"bytes", readable ? Json(entry.bytes) : Json(nullptr)},
          {"kind", readable ? Json(Name(*entry.kind)) : Json(nullptr)},
          {"base", TextOrNull(entry.base)},
          {"quantization", TextOrNull(entry.quantization)},
          {"model_sha256", TextOrNull(entry.model_sha256)},
          {"problem", TextOrNull(entry.problem)},
          {"unreadable", entry.unreadable.has_value()}};
}

// One that cannot be read need not be corrupt.
const char* KindOfProblem(const CheckpointEntry& entry) {
  return entry.unreadable ? "CANNOT BE READ" : "CORRUPT";
}

std::string State(const CheckpointEntry& entry) {
  if (!entry.problem.empty()) return fmt::format("{}: {}", KindOfProblem(entry), entry.problem);
  return entry.quantization.empty() ? "ok" : "ok, " + ExactnessNote(entry.quantization);
}

void PrintTable(const std::vector<CheckpointEntry>& entries) {
  Table table({{"name"},
               {"step", kRight},
               {"time (UTC)"},
               {"size", kRight},
               {"kind"},
               {"base"},
               {"state"}});
  for (const CheckpointEntry& entry : entries) {
    const auto known = [&](const std::string& text) { return entry.kind ? text : "?"; };
    table.Add({entry.name, fmt::format("{}", entry.step), known(UtcOf(entry)), known(Size(entry)),
               known(std::string(Name(entry.kind.value_or(CheckpointKind::kFull)))), entry.base,
               State(entry)});
  }
  fmt::print("{}", table.Text());
}

void List(const CheckpointListOptions& options) {
  const std::vector<CheckpointEntry> entries = FindCheckpoints(options.path);
  if (options.json) {
    Json out = Json::array();
    for (const CheckpointEntry& entry : entries) out.push_back(ToJson(entry));
    fmt::print("{}\n", out.dump(2));
    return;
  }
  if (entries.empty()) {
    LogInfo("{} holds no checkpoints yet", options.path);
    return;
  }
  PrintTable(entries);
}

// Verifies every file of an entry whose manifest is valid and sets its problem. Bases in `verified`
// are not read again.
void VerifyFiles(CheckpointEntry& entry, const std::set<std::string>& verified) {
  if (!entry.problem.empty()) return;
  try {
    CheckpointReader(entry.path).VerifyAll(!verified.contains(entry.base));
  } catch (const Error& error) {
    entry.SetProblem(error);
  }
}

void PrintVerified(const CheckpointEntry& entry) {
  if (!entry.problem.empty()) {
    fmt::print("{}: {}: {}\n", KindOfProblem(entry), entry.path, entry.problem);
    return;
  }
  const std::string note = ExactnessNote(entry.quantization);
  fmt::print("valid: {}: {}, step {}, {}{}{}\n", entry.path, Name(*entry.kind), entry.step,
             Size(entry), note.empty() ? "" : ", ", note);
  if (!entry.model_sha256.empty()) fmt::print("  model_sha256 {}\n", entry.model_sha256);
}

int Verify(const CheckpointListOptions& options) {
  std::vector<CheckpointEntry> entries = FindCheckpoints(options.path);
  // Oldest first, so that a base comes before its increments.
  std::reverse(entries.begin(), entries.end());
  std::set<std::string> verified;
  Json list = Json::array();
  size_t unusable = 0;
  std::optional<ErrorCode> code;  // kData if any is corrupt
  for (CheckpointEntry& entry : entries) {
    VerifyFiles(entry, verified);
    if (entry.problem.empty()) verified.insert(entry.name);
    if (!entry.problem.empty()) {
      ++unusable;
      if (code != ErrorCode::kData) code = entry.unreadable.value_or(ErrorCode::kData);
    }
    if (options.json) {
      list.push_back(ToJson(entry));
    } else {
      PrintVerified(entry);
    }
  }
  if (options.json)
    fmt::print("{}\n", Json({{"valid", !code}, {"checkpoints", std::move(list)}}).dump(2));
  if (!code) return 0;
  LogError("{} of {} cannot be used", unusable, Counted(std::ssize(entries), "checkpoint"));
  return static_cast<int>(*code);
}

}  // namespace

std::string ExactnessNote(const std::string& quantization) {
  return quantization.empty() ? "" : quantization + ": not bit-exact";
}

void AddCheckpointListVerb(CLI::App& checkpoint) {
  const auto options = std::make_shared<CheckpointListOptions>();
  CLI::App* list = checkpoint.add_subcommand("list", "List the checkpoints of a run");
  list->add_option("DIR", options->path, "A run, or a directory of checkpoints")->required();
  list->add_flag("--json", options->json, "Print JSON");
  list->footer(
      "Newest first. Checks manifests and sizes but not file checksums: see verify.\n"
      "Example: renzan checkpoint list runs/a");
  list->callback([options] { List(*options); });
}

void AddCheckpointVerifyVerb(CLI::App& checkpoint, int& exit_status) {
  const auto options = std::make_shared<CheckpointListOptions>();
  CLI::App* verify = checkpoint.add_subcommand("verify", "Check every file of checkpoints");
  verify->add_option("DIR", options->path, "A checkpoint, a model, a run or a directory of them")
      ->required();
  verify->add_flag("--json", options->json, "Print JSON");
  verify->footer(
      "Lists all checkpoints. Exits with 65 if one is corrupt, with 66 or 74 if one cannot be\n"
      "read and so may be valid.\n"
      "Example: renzan checkpoint verify runs/a");
  verify->callback([options, &exit_status] { exit_status = Verify(*options); });
}

}  // namespace renzan
