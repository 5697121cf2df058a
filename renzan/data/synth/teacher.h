#pragma once

// The teacher model behind generated data. Every row is a pure function of (seed, row index):
// ranges of one stream are disjoint datasets of the same teacher.
//
//   id of table f      a power law over the table's ranks, P(k) ~ 1 / (k + 1)^s_f
//   dense value d      floor(exp(normal)) or missing
//   logit              bias + sum_f weight_f[id_f] + sum_d a_d * standardised log(x_d + 1)
//                      + sum over a few pairs of tables <u_f[id_f], v_g[id_g]>
//                      + sum over bags of weight[id]
//   label              Bernoulli(sigmoid(logit))
//
// Weights shrink with the rank: a rare value cannot be learned and matters little. Interactions are
// centred, so that they contain no main effect. Immutable, thread-safe.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "renzan/data/dataset/dataset.h"

namespace renzan {

struct TeacherOptions {
  uint64_t seed = 1;
  int num_dense = 13;
  int num_one_hot = 26;
  int num_multi_hot = 0;
  int64_t rows_per_table = 20'000;  // of the largest table; the smallest has 4
};

struct SynthRow {
  static constexpr int64_t kMissingDense = -1;

  float label = 0;
  double probability = 0;        // of label 1, by the teacher
  std::vector<int64_t> dense;    // whole numbers >= 0, or kMissingDense
  std::vector<int64_t> one_hot;  // 0: missing
  std::vector<std::vector<int64_t>> multi_hot;
};

class Teacher {
 public:
  explicit Teacher(const TeacherOptions& options);

  // label, I1.., C1.., M1..; num_embeddings are the tables' sizes plus one for missing.
  const DatasetSchema& schema() const { return schema_; }
  void Draw(int64_t row, SynthRow* out) const;
  // The value of id `id` of one-hot feature `feature` as text: 8 hexadecimal digits, distinct for
  // distinct ids.
  uint32_t TextValue(size_t feature, int64_t id) const;

 private:
  static constexpr size_t kLatentDim = 4;

  struct Table {
    std::vector<uint32_t> threshold;  // rank k is drawn for words in [threshold[k], threshold[k+1])
    std::vector<uint32_t> guide;      // first rank to check, by the word's leading bits
    std::vector<double> share;        // P(k)
    std::vector<int32_t> id;          // of rank
    std::vector<float> weight;        // of rank
    std::vector<float> latent;        // [ranks, kLatentDim], or empty
    uint32_t text_key = 0;

    size_t Rank(uint32_t word) const;
  };
  struct DenseColumn {
    double mu = 0, sigma = 1, weight = 0, mean = 0, scale = 1, missing = 0;
  };

  Table MakeTable(uint64_t index, int64_t size, bool has_missing, double weight_variance) const;
  void MakePairs();

  TeacherOptions options_;
  DatasetSchema schema_;
  uint64_t row_key_;
  std::vector<Table> one_hot_, multi_hot_;
  std::vector<DenseColumn> dense_;
  std::vector<std::pair<size_t, size_t>> pairs_;  // of one-hot tables
};

}  // namespace renzan
