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

#include "renzan/nn/dropout.h"
#include "renzan/nn/packed_parameters.h"
#include "renzan/nn/parameters.h"
#include "renzan/nn/weight_gradients.h"
#include "renzan/tensor/aligned_buffer.h"
#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

struct TableInput {
  std::string name;
  int64_t dim = 0;  // of its rows
};

struct ModelOptions {
  std::string type = "dlrm";  // one of ModelTypeNames()
  int64_t num_dense = 0;
  std::vector<TableInput> tables;
  int64_t embedding_dim = 16;                        // of feature vector 0
  std::vector<int64_t> bottom_mlp = {512, 256, 64};  // hidden layers; embedding_dim is appended
  std::vector<int64_t> top_mlp = {512, 256};         // hidden layers; the logit is appended
  int cross_layers = 3;                              // dlrm_dcnv2
  int64_t cross_rank = 512;                          // dlrm_dcnv2
  DropoutOptions dropout;                            // after the hidden layers of both MLPs
  // The precision of weights, activations and their gradients in all products, which accumulate in
  // float32.
  Precision precision = Precision::kFloat32;
};

class Model;

// What comes between the feature vectors and the top MLP.
enum class Interaction {
  kDot,    // dot products of all pairs; rows of another dimension than embedding_dim are projected
  kCross,  // a low-rank cross network over the concatenated vectors, which may have any dimension
};

struct ModelType {
  const char* name;  // in the configuration
  Interaction interaction;
  std::unique_ptr<Model> (*make)(const ModelOptions& options);
};

std::vector<std::string> ModelTypeNames();
// Throws kConfig for an unknown name.
const ModelType& FindModelType(const std::string& name);

int64_t FeaturesPerSample(const ModelOptions& options);

class Model {
 public:
  // Feature vector 0 is the bottom MLP's output; vectors 1.. are the tables' pooled rows.
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
  // The sum of embedding_dim and the tables' dimensions.
  int64_t features_per_sample() const { return FeaturesPerSample(options_); }
  const ModelOptions& options() const { return options_; }

  virtual std::unique_ptr<Workspace> MakeWorkspace(int64_t n) const = 0;
  // The columns of each matrix [n, columns] of a workspace, for estimates of memory.
  virtual std::vector<int64_t> WorkspaceColumns() const = 0;

  // The part of a sample's costs that does not belong to fully connected layers: arithmetic forward
  // and backward, where a multiply-add counts as two; and the number of values that the interaction
  // produces on a GPU, including their gradients.
  virtual double InteractionFlops() const { return 0; }
  virtual double InteractionValuesOnGpu() const = 0;

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

// Arithmetic operations for one sample, forward and backward; a multiply-add counts as two.
double FlopsPerSample(const Model& model);
// How many values the layers produce for one sample.
double ActivationsPerSample(const Model& model);

// Throws kConfig for an unknown type or invalid sizes.
std::unique_ptr<Model> MakeModel(const ModelOptions& options);

}  // namespace renzan
