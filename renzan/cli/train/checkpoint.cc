// renzan checkpoint diff|export, and the verb itself.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/checkpoint/export.h"
#include "renzan/checkpoint/model_diff.h"
#include "renzan/cli/train/checkpoint_list.h"
#include "renzan/cli/verbs.h"
#include "renzan/saving/model_directory.h"

namespace renzan {
namespace {

using Json = nlohmann::ordered_json;

struct CheckpointOptions {
  std::string a, b;
  std::string output;
  bool json = false;
  bool weights_only = false;
};

// JSON has no infinity and no NaN.
Json Number(double value) {
  if (std::isfinite(value)) return value;
  return fmt::format("{}", value);
}

// In the digits that a value of the checkpoint needs: most are float32.
std::string ValueText(double value) {
  const float narrow = static_cast<float>(value);
  return narrow == value ? fmt::format("{}", narrow) : fmt::format("{}", value);
}

void PrintDiffJson(const ModelDiff& diff) {
  Json out = {{"same", diff.same()},
              {"step_a", diff.step_a},
              {"step_b", diff.step_b},
              {"only_in_a", diff.only_in_a},
              {"only_in_b", diff.only_in_b},
              {"other_shape", diff.other_shape},
              {"tensors", diff.tensors},
              {"tensors_differing", diff.tensors_differing},
              {"values", diff.values},
              {"values_differing", diff.values_differing},
              {"max_abs_difference", Number(diff.max_abs_difference)},
              {"first", nullptr}};
  if (diff.first)
    out["first"] = {{"key", diff.first->key},
                    {"index", diff.first->index},
                    {"a", Number(diff.first->a)},
                    {"b", Number(diff.first->b)}};
  fmt::print("{}\n", out.dump(2));
}

void PrintDiff(const ModelDiff& diff) {
  if (diff.same()) {
    fmt::print("same: {}, {}, step {}\n", Counted(diff.tensors, "tensor"),
               Counted(diff.values, "value"), diff.step_a);
    return;
  }
  if (diff.step_a != diff.step_b) fmt::print("step: {} and {}\n", diff.step_a, diff.step_b);
  for (const std::string& key : diff.only_in_a) fmt::print("only in the first: {}\n", key);
  for (const std::string& key : diff.only_in_b) fmt::print("only in the second: {}\n", key);
  for (const std::string& key : diff.other_shape) fmt::print("different shape or type: {}\n", key);
  fmt::print("differing: {} of {}, {} of {}\n", diff.tensors_differing,
             Counted(diff.tensors, "tensor"), diff.values_differing, Counted(diff.values, "value"));
  if (diff.first)
    fmt::print("first: {}[{}] is {} and {}\nlargest difference: {}\n", diff.first->key,
               diff.first->index, ValueText(diff.first->a), ValueText(diff.first->b),
               diff.max_abs_difference);
}

// Logs which checkpoint is used if the path does not say, and whether it is inexact.
CheckpointReader OpenModel(const std::string& path) {
  const ModelPlace place = FindModel(path);
  if (!place.note.empty()) LogInfo("{}", place.note);
  CheckpointReader reader(place.dir);
  const std::string note = ExactnessNote(reader.manifest().quantization);
  if (!note.empty()) LogWarning("{}: {}", place.dir, note);
  return reader;
}

}  // namespace

void AddCheckpointVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb =
      app.add_subcommand("checkpoint", "List, verify, compare and export checkpoints and models");
  verb->require_subcommand(1);
  AddCheckpointListVerb(*verb);
  AddCheckpointVerifyVerb(*verb, exit_status);
  const auto options = std::make_shared<CheckpointOptions>();

  CLI::App* diff = verb->add_subcommand("diff", "Compare two models bit by bit");
  diff->add_option("A", options->a, "A run, a model or a checkpoint")->required();
  diff->add_option("B", options->b, "Another one")->required();
  diff->add_flag("--json", options->json, "Print JSON");
  diff->footer(
      "Exits with 0 if both are the same, with 1 if they differ.\n"
      "Example: renzan checkpoint diff runs/a runs/b");
  diff->callback([options, &exit_status] {
    CheckpointReader a = OpenModel(options->a), b = OpenModel(options->b);
    const ModelDiff result = DiffModels(a, b);
    options->json ? PrintDiffJson(result) : PrintDiff(result);
    exit_status = result.same() ? 0 : 1;
  });

  CLI::App* save = verb->add_subcommand("export", "Write a model as one safetensors file");
  save->add_option("DIR", options->a, "A run, a model or a checkpoint")->required();
  save->add_option("-o,--output", options->output,
                   "The file to write, here or in an object store: model.safetensors (the ending "
                   "is added to a name without one)")
      ->required()
      ->type_name("FILE");
  save->add_flag("--weights-only", options->weights_only, "Leave out optimizer states");
  save->footer(
      "Read the result with safetensors.numpy.load_file.\n"
      "Example: renzan checkpoint export runs/a --output model.safetensors --weights-only");
  save->callback([options] {
    const std::string output = ExportName(options->output);
    if (output.empty())
      Fail(ErrorCode::kUsage, "--output {}: the name must end in .safetensors", options->output);
    CheckpointReader model = OpenModel(options->a);
    const int64_t tensors = ExportModel(model, output, options->weights_only);
    fmt::print("{}: {}\n", output, Counted(tensors, "tensor"));
  });
}

}  // namespace renzan
