#pragma once

// Writes generated data with a teacher model: as Criteo TSV or directly as a dataset. The same
// options give the same bytes. The output appears atomically.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/synth/teacher.h"
#include "renzan/data/text/input.h"

namespace renzan {

struct SynthOptions {
  TeacherOptions teacher;
  std::string output;
  std::string format = "criteo";  // or "dataset"
  int64_t rows = 1'000'000;
  int64_t first_row = 0;
  int64_t shard_rows = 4'000'000;  // of format dataset
  std::function<void(int64_t rows)> progress;
  StopFunction stop;
};

struct SynthResult {
  BayesOptimal bayes_optimal;
  double label_rate = 0;
};

// With format criteo, also writes the report "<output>.synth.json".
SynthResult Synthesize(const SynthOptions& options);

// AUC and log loss of probabilities, in bounded memory: probabilities fall into 2^20 bins, and
// those in one bin count as ties.
class TeacherScore {
 public:
  TeacherScore();
  void Add(double probability, bool positive);
  BayesOptimal Result() const;
  double label_rate() const;

 private:
  std::vector<int64_t> positives_, negatives_;
  int64_t num_positive_ = 0, num_rows_ = 0;
  double loss_ = 0;
};

}  // namespace renzan
