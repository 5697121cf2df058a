#include "renzan/run/loop_state.h"

#include <cmath>
#include <cstring>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/infer/evaluate.h"
#include "renzan/quality/gradient_range.h"

namespace renzan {
namespace {

constexpr const char* kWindow = "progress.window";
constexpr const char* kGradientRange = "progress.gradient_range";
constexpr const char* kWatch = "progress.watch";
constexpr const char* kMilliseconds = "progress.milliseconds";
constexpr const char* kEvaluations = "progress.evaluations";
constexpr const char* kPlateau = "progress.plateau";
constexpr const char* kBestPlateau = "progress.best_plateau";
constexpr const char* kEvaluationDue = "progress.evaluation_due";

// 0 where it is missing.
int64_t Number(const ProgressTensors& tensors, const char* key) {
  const auto found = tensors.find(key);
  return found != tensors.end() && found->second.size() == 1 ? found->second.front() : 0;
}

// Of the first task as it has always been, before there were several.
std::string KeyOfTask(const char* key, size_t task) {
  return task == 0 ? key : fmt::format("{}.{}", key, task);
}

}  // namespace

std::span<OutputMetrics> WindowOf(LoopState* state, size_t task) {
  const size_t threads = state->window.size() / state->watches.size();
  return std::span(state->window).subspan(task * threads, threads);
}

ProgressTensors SaveProgress(Communicator& comm, const LoopState& state) {
  const WireRange range = MergeRanges(comm, state.gradient_range);
  ProgressTensors tensors = SaveEvaluations(state.evaluations, state.plateau);
  if (!state.best_plateau.empty()) tensors[kBestPlateau] = state.best_plateau.ToIntegers();
  const size_t threads = state.window.size() / state.watches.size();
  for (size_t task = 0; task < state.watches.size(); ++task) {
    OutputMetrics mine;
    for (size_t thread = 0; thread < threads; ++thread)
      mine.Merge(state.window[task * threads + thread]);
    tensors[KeyOfTask(kWindow, task)] = MergeMetrics(comm, mine).ToIntegers();
    tensors[KeyOfTask(kWatch, task)] = state.watches[task].ToIntegers();
  }
  tensors[kGradientRange] = {range.values, range.overflowed, range.underflowed};
  tensors[kMilliseconds] = {std::llround(state.seconds * 1000)};
  tensors[kEvaluationDue] = {state.evaluation_due ? 1 : 0};
  return tensors;
}

ProgressTensors SaveEvaluations(const EvaluationRecord& evaluations, const Plateau& plateau) {
  ProgressTensors tensors;
  if (!evaluations.empty()) tensors[kEvaluations] = evaluations.ToIntegers();
  if (!plateau.empty()) tensors[kPlateau] = plateau.ToIntegers();
  return tensors;
}

void RestoreProgress(const ProgressTensors& tensors, int rank, LoopState* state) {
  CHECK(!state->window.empty());
  const auto find = [&](const std::string& key) -> const std::vector<int64_t>* {
    const auto found = tensors.find(key);
    return found == tensors.end() ? nullptr : &found->second;
  };
  // Merging is exact, so one thread may hold the whole window.
  for (size_t task = 0; task < state->watches.size(); ++task) {
    if (const auto* window = find(KeyOfTask(kWindow, task)); window != nullptr && rank == 0)
      WindowOf(state, task)[0] = OutputMetrics::FromIntegers(*window);
    if (const auto* watch = find(KeyOfTask(kWatch, task)))
      state->watches[task] = DivergenceWatch::FromIntegers(*watch);
  }
  if (const auto* range = find(kGradientRange); range != nullptr && range->size() == 3 && rank == 0)
    state->gradient_range = {(*range)[0], (*range)[1], (*range)[2]};
  if (const auto* evaluations = find(kEvaluations))
    if (!state->evaluations.Restore(*evaluations) && rank == 0)
      LogWarning(
          "results of earlier evaluations are dropped: training.early_stopping.metric or output, "
          "training.group_by or the texts of its key, training.ranking, the rows of data.eval or "
          "their weights have changed, or an earlier version compared them without weights");
  if (const auto* plateau = find(kPlateau)) {
    state->plateau.Restore(*plateau);
    // Of a model, which is that of the best evaluation where there is another.
    const auto* best = find(kBestPlateau);
    state->best_plateau.Restore(best != nullptr ? *best : *plateau);
  }
  state->seconds = static_cast<double>(Number(tensors, kMilliseconds)) / 1000;
  state->evaluation_due = EvaluationDue(tensors);
}

void CheckSameEvaluations(const ProgressTensors& tensors, Plateau plateau) {
  const auto found = tensors.find(kPlateau);
  if (found != tensors.end()) plateau.Restore(found->second);
}

bool CanContinue(const ProgressTensors& tensors, EvaluationRecord record) {
  const auto found = tensors.find(kEvaluations);
  return found == tensors.end() || record.Restore(found->second);
}

bool EvaluationDue(const ProgressTensors& tensors) { return Number(tensors, kEvaluationDue) != 0; }

}  // namespace renzan
