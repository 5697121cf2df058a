#pragma once

// A model: everything between the pooled embedding rows and the logits, for the fixed number of
// samples of one virtual worker. Embedding tables are not part of a model.
//
// A model's parameters are one flat array (ParameterLayout) that the caller owns. Forward and
// Backward are thread-safe with one workspace per thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "renzan/model/graph.h"
#include "renzan/model/loss.h"
#include "renzan/model/match_output.h"
#include "renzan/model/sizes.h"
#include "renzan/nn/dropout.h"
#include "renzan/nn/packed_parameters.h"
#include "renzan/nn/parameters.h"
#include "renzan/nn/weight_gradients.h"
#include "renzan/tensor/aligned_buffer.h"
#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

struct TableInput {
  std::string name;
  int64_t dim = 0;  // of its rows: RowColumns() of its embedding dimension
  bool multi_hot = false;
  int64_t num_ids = 0;
};

// A feature whose rows are not pooled, but one after another.
struct SequenceInput {
  std::string name;
  int64_t dim = 0;
  int64_t positions = 0;
  std::string target = {};  // the feature that `din` compares it with, one of `tables`; or ""
  // The feature of `tables` whose negatives it holds (data/sampled_negatives.h); or "". Predictions
  // have none, so that only blocks that need none there may take them.
  std::string negatives_of = {};
};

// What a model predicts.
struct ModelOutput {
  std::string name;        // "" of the only one
  std::string block = {};  // that gives its logit or number; "": the last of the graph
  std::string label = {};  // that it learns from; "": none
  Loss loss = Loss::kBinaryCrossEntropy;
  std::string where = {};  // as GraphBlock::where
};

// Of a model whose graph is `model.blocks` in the configuration.
inline constexpr const char* kBlocksType = "blocks";

struct ModelOptions {
  std::string type = "dlrm";  // one of ModelTypeNames(), or kBlocksType
  Graph blocks;               // of kBlocksType
  int64_t num_dense = 0;
  std::vector<TableInput> tables;  // of the features whose rows are pooled
  std::vector<SequenceInput> sequences;
  std::vector<ModelOutput> outputs = {{}};  // at least one
  int64_t embedding_dim = 16;
  ModelSizes sizes;
  uint64_t seed = 0;  // of dropout
  // The precision of weights, activations and their gradients in all products, which accumulate in
  // float32.
  Precision precision = Precision::kFloat32;
};

// The sum of the dimensions of `tables`.
int64_t PooledColumns(const ModelOptions& options);

class Model {
 public:
  struct Workspace {
    BlockedMatrix dense;  // in: [n, num_dense]
    // in: the pooled rows, in pooled_columns() from first_pooled() on; then for each sequence its
    // rows [n, positions · dim], zeros after its last, ...
    std::vector<BlockedMatrix> features;
    std::vector<std::vector<int32_t>> lengths;  // in: ... and how many it has, [n]
    std::vector<SampleItems> items;             // in, for training: of items()
    AlignedBuffer logits;                       // out: [outputs, n]
    AlignedBuffer d_logits;                     // in: like `logits`
    std::vector<BlockedMatrix> d_features;      // out: like `features`
    // in: for dropout; unset in evaluation
    std::optional<TrainingPosition> training;

   private:
    friend class Model;
    // A matrix of a sequence in rows: as many as the samples use.
    struct Rows {
      BlockedMatrix* matrix;
      SequenceId sequence;
      VectorLayout layout;
    };
    // The matrices of a block.
    struct Matrices {
      std::vector<const BlockedMatrix*> inputs;
      BlockedMatrix *output, *d_output;
      std::vector<BlockedMatrix*> d_inputs, added_to;  // null: not
    };
    std::vector<BlockedMatrix> buffers;
    std::vector<AlignedBuffer> rows;
    std::vector<Matrices> nodes;
    std::vector<BlockedMatrix*> outputs, d_outputs;
    std::vector<Rows> in_rows;
  };

  // Throws BlockError for a graph whose blocks do not fit, or leave an output unused.
  Model(const ModelOptions& options, const Graph& graph);

  const ModelOptions& options() const { return options_; }
  const ParameterLayout& layout() const { return layout_; }
  size_t num_outputs() const { return options_.outputs.size(); }
  // Of Workspace::features[0]. Other columns than those of pooled rows belong to the model.
  int64_t pooled_columns() const { return PooledColumns(options_); }
  int64_t first_pooled() const { return first_pooled_; }
  int64_t features_columns() const { return features_columns_; }

  // What an output matches, if it is a match.
  std::optional<MatchOutput> MatchOf(size_t output) const;

  std::unique_ptr<Workspace> MakeWorkspace(int64_t n) const;
  // The columns of matrices [n, columns] that take as much memory as those of a workspace.
  std::vector<int64_t> WorkspaceColumns() const;
  // The float32 values of each row that a workspace has besides, however many samples.
  const std::vector<int64_t>& WorkspaceRows() const { return buffers_.rows(); }

  // The features whose ids blocks want in training.
  struct Item {
    size_t table = 0;  // of ModelOptions::tables
    bool popularity = false;
  };
  const std::vector<Item>& items() const { return items_; }
  // Whether an output learns to tell items from others: Block::ComparesItems().
  bool ComparesItems(size_t output) const;
  // RejectBlock() of the block of this name.
  [[noreturn]] void Reject(const std::string& block, const std::string& what) const;
  // Throws BlockError if a block takes the logit of one that compares items.
  void CheckComparisonsAreOutputs() const;
  // The first block that compares the samples of a virtual worker in training; "": none.
  std::string ComparesSamples() const;

  // For one sample: arithmetic operations, forward and backward, where a multiply-add counts as
  // two; and how many values its layers produce. `samples`: of a virtual worker.
  double FlopsPerSample(int64_t samples = 1) const;
  double ActivationsPerSample() const;

  // dense, pooled rows, sequences -> logits
  void Forward(const PackedParameters& parameters, Workspace* workspace) const;

  // After Forward: the vectors of the first n samples, of an output that is a match.
  void GetMatch(const Workspace& workspace, int64_t n, const MatchVectors& to) const;

  // After Forward: d_logits -> the pooled rows' gradients and those of all parameters.
  void Backward(const PackedParameters& parameters, WeightGradients* gradients,
                Workspace* workspace) const;

 private:
  // Where a matrix of the workspace is.
  struct Place {
    enum Where { kNone, kDense, kFeatures, kGradientOfFeatures, kBuffer } where = kNone;
    size_t index = 0;  // of features or buffers
  };
  // An input of the graph or a block's output.
  struct Value {
    std::string name;
    Shape shape;
    bool is_float32 = false;    // whatever the model's precision: see Block::GivesLogit()
    bool has_gradient = false;  // otherwise nothing that is trained comes before it
    int uses = 0;
    std::optional<SequenceId> sequence = {};  // whose positions its vectors are
    bool padded = false;                      // BlockPlace::padded
    VectorLayout layout = VectorLayout::kColumns;
    std::optional<size_t> converted = {};  // the value that this is in another layout
    Place place = {}, gradient = {};
    std::string where = {};  // GraphBlock::where
  };
  // The rows of one pooled feature, copied out of all.
  struct Part {
    size_t value;
    int64_t column, dim;
  };
  struct Node {
    std::unique_ptr<Block> block;
    std::vector<size_t> inputs;  // values
    size_t output = 0;           // value
    // Where it writes the gradient of each input. A later block may have written an input's own
    // gradient already: then to another buffer, which is added to it.
    std::vector<Place> d_inputs = {};
  };

  void AddBlock(const GraphBlock& block);
  std::optional<size_t> AddPart(const std::string& input);
  void CopyParts(Workspace* workspace) const;
  void AddGradientsOfParts(Workspace* workspace) const;
  void AddItem(const GraphBlock& block, const ItemRequest& request);
  void CheckNames(const GraphBlock& block, size_t first) const;
  void CheckNegatives(const GraphBlock& block, const Node& node) const;
  size_t ValueNamed(const GraphBlock& block, const std::string& name);
  bool HoldsPooledRows(const Node& node) const;
  const Node* NodeOf(size_t output) const;
  MatchSide SideOf(size_t value) const;
  void AddOutput(const ModelOutput& output);
  void NarrowToNewest();
  void ConvertSequences();
  size_t Converted(size_t value, VectorLayout layout, size_t before);
  size_t AddBuffer(const Value& value, Precision precision);
  void PlaceValues();
  void PlaceGradients();
  static BlockedMatrix* At(const Place& place, Workspace* workspace);

  ModelOptions options_;
  ParameterLayout layout_;
  BufferLayout buffers_;
  std::vector<Value> values_;
  std::vector<Part> parts_;
  size_t part_row_ = 0;  // of the buffers' rows
  std::vector<Node> nodes_;
  std::vector<Item> items_;
  std::vector<size_t> outputs_;  // values
  int64_t features_columns_ = 0, first_pooled_ = 0;
};

// Of the catalogue.
std::vector<std::string> ModelTypeNames();

// Those that are named.
std::vector<GraphOutput> BlocksOfOutputs(const std::vector<ModelOutput>& outputs);

// Throws kConfig for an unknown type.
Graph GraphOf(const ModelOptions& options);

// The columns of a table's rows in a model of this type: the embedding's, and one for a first-order
// weight if the model has one. An unknown type has none.
int64_t RowColumns(const std::string& type, int64_t embedding_dim);

// Throws kConfig for an unknown type or invalid sizes.
std::unique_ptr<Model> MakeModel(const ModelOptions& options);

}  // namespace renzan
