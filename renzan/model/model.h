#pragma once

// The available models: everything between the pooled embedding rows and the logits, for the fixed
// number of samples of one virtual worker. Embedding tables are not part of a model.
//
// A model's parameters are one flat array (ParameterLayout) that the caller owns. Forward and
// Backward are thread-safe with one workspace per thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/aligned_buffer.h"
#include "renzan/base/blocked_matrix.h"
#include "renzan/nn/dropout.h"
#include "renzan/nn/packed_parameters.h"
#include "renzan/nn/parameters.h"
#include "renzan/nn/weight_gradients.h"

namespace renzan {

struct TableInput {
  std::string name;
  int64_t dim = 0;  // of its rows
};

struct ModelOptions {
  std::string type = "dlrm";  // one of ModelTypes()
  int64_t num_dense = 0;
  std::vector<TableInput> tables;
  int64_t embedding_dim = 16;                        // of feature vector 0
  std::vector<int64_t> bottom_mlp = {512, 256, 64};  // hidden layers; embedding_dim is appended
  std::vector<int64_t> top_mlp = {512, 256};         // hidden layers; the logit is appended
  int cross_layers = 3;                              // dlrm_dcnv2
  int64_t cross_rank = 512;                          // dlrm_dcnv2
  DropoutOptions dropout;                            // after the hidden layers of both MLPs
  // Of weights, activations and their gradients in all products, which accumulate in float32.
  Precision precision = Precision::kFloat32;
};

// "dlrm": dot interaction, for which rows of another dimension than embedding_dim are projected.
// "dlrm_dcnv2": low-rank cross network over the concatenated vectors, which may have any.
std::vector<std::string> ModelTypes();

int64_t FeaturesPerSample(const ModelOptions& options);

class Model {
 public:
  // Feature vector 0 is the bottom MLP's output, 1.. are the tables' pooled rows.
  struct Workspace {
    virtual ~Workspace() = default;
    BlockedMatrix dense;       // in:  [n, num_dense]
    BlockedMatrix features;    // in:  [n, features_per_sample], vectors 1.. filled
    AlignedBuffer logits;      // out: [n]
    AlignedBuffer d_logits;    // in:  [n]
    BlockedMatrix d_features;  // out: like `features`
    // in: for dropout; unset in evaluation
    std::optional<TrainingPosition> training;
  };

  virtual ~Model() = default;

  const ParameterLayout& layout() const { return layout_; }
  // embedding_dim and the dimensions of the tables.
  int64_t features_per_sample() const { return FeaturesPerSample(options_); }
  const ModelOptions& options() const { return options_; }

  virtual std::unique_ptr<Workspace> MakeWorkspace(int64_t n) const = 0;

  // dense, features[1..] -> logits
  virtual void Forward(const PackedParameters& parameters, Workspace* workspace) const = 0;

  // After Forward: d_logits -> d_features and the gradients of all parameters.
  virtual void Backward(const PackedParameters& parameters, WeightGradients* gradients,
                        Workspace* workspace) const = 0;

 protected:
  explicit Model(const ModelOptions& options) : options_(options) {}
  void InitializeWorkspace(int64_t n, Workspace* workspace) const;

  ModelOptions options_;
  ParameterLayout layout_;
};

// The arithmetic of one sample, forward and backward; a multiply-add counts as two.
double FlopsPerSample(const Model& model);
// How many values the layers of one sample put out.
double ActivationsPerSample(const Model& model);

// Throws kConfig for an unknown type or invalid sizes.
std::unique_ptr<Model> MakeModel(const ModelOptions& options);

}  // namespace renzan
