#pragma once

// A block of a model's graph (graph.h): from some matrices to one matrix, forward and backward, for
// the fixed number of samples of one virtual worker. Blocks are thread-safe: a block only holds
// sizes, offsets into the parameters and indices of its buffers; each thread has buffers of its
// own.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/nn/dropout.h"
#include "renzan/nn/packed_parameters.h"
#include "renzan/nn/parameters.h"
#include "renzan/nn/weight_gradients.h"
#include "renzan/tensor/aligned_buffer.h"
#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

class ConfigFields;

// Of a vector that a block gives.
inline constexpr int64_t kMaxWidth = int64_t{1} << 20;

// A value of the graph has some vectors for each sample, one after the other in the columns of its
// matrix: the features' embeddings, or one vector, the output of a block.
struct FeatureVector {
  std::string name;  // of the feature or block
  int64_t dim = 0;
};
using Shape = std::vector<FeatureVector>;
int64_t ColumnsOf(const Shape& shape);
// "1 vector of 64", "26 vectors of 16", "3 vectors of 16, 8, 16".
std::string Describe(const Shape& shape);

// The vectors of a value may be the positions of a sequence, of which each sample uses the first
// ones: as many as it has rows of this sequence (BlockPass::lengths), and those that blocks have
// appended. Where the others have columns, these are zeros, and what a gradient says of them means
// nothing.
struct SequenceId {
  size_t index = 0;
  int64_t appended = 0;
  bool operator==(const SequenceId&) const = default;
};

// Where the vectors of a value are in its matrix. Blocks that tell positions apart take and give
// sequences in rows, so that nothing is computed for positions that no sample uses.
enum class VectorLayout {
  kColumns,  // a sample is a row, its vectors are side by side
  kRows,     // each used position is a row, one sample after the other
  kNewest,   // the same of each sample's last used position alone
};

// A feature with one value whose ids a block wants in training.
struct ItemRequest {
  std::string feature;
  bool popularity = false;  // and how frequent they are
};

// What the samples of a pass in training have of such a feature.
struct SampleItems {
  std::vector<int32_t> first;     // [n]: the first sample with the same id
  std::vector<float> log_shares;  // [n]: log of the share of the training data's rows with this id
  std::vector<int32_t> order;     // [n]: for whoever sets them
};

// The matrices [n · rows per sample, columns] that blocks use between a forward and its backward
// pass, or within one. A layout is built once and never changes.
class BufferLayout {
 public:
  explicit BufferLayout(Precision precision) : precision_(precision) {}

  // Appends a matrix of the model's precision, or of another one, with one row for each sample or
  // more, and returns its index.
  size_t Add(int64_t columns) { return Add(columns, precision_); }
  size_t Add(int64_t columns, Precision precision, int64_t rows_per_sample = 1) {
    buffers_.push_back({columns, precision, rows_per_sample * rows_factor_});
    return buffers_.size() - 1;
  }

  size_t AddRows(int64_t columns, int64_t rows_per_sample) {
    return Add(columns, precision_, rows_per_sample);
  }

  Precision precision() const { return precision_; }  // the model's

  // Matrices that are added from now on have so many times the rows.
  void set_rows_factor(int64_t factor) { rows_factor_ = factor; }

  size_t size() const { return buffers_.size(); }  // matrices

  // Appends a row of float32 values, for work on one sample at a time, and returns its index.
  size_t AddRow(int64_t columns) {
    rows_.push_back(columns);
    return rows_.size() - 1;
  }

  // Returns the index of a row of at least so many float32 values that all blocks share: a block
  // may ask for it once, and what it holds is lost when its pass ends. Unlike other rows, it may
  // begin with any values. Blocks of a thread run one after the other.
  size_t ShareRow(int64_t columns) {
    if (!shared_row_) shared_row_ = AddRow(0);
    rows_[*shared_row_] = std::max(rows_[*shared_row_], columns);
    return *shared_row_;
  }

  std::vector<BlockedMatrix> Make(int64_t n) const;
  std::vector<AlignedBuffer> MakeRows() const;
  // For each matrix, the values of the model's precision that a sample takes, in whole blocks.
  std::vector<int64_t> columns() const;
  // The values of each row.
  const std::vector<int64_t>& rows() const { return rows_; }

 private:
  struct Buffer {
    int64_t columns;
    Precision precision;
    int64_t rows_per_sample;
  };
  Precision precision_;
  int64_t rows_factor_ = 1;
  std::vector<Buffer> buffers_;
  std::vector<int64_t> rows_;
  std::optional<size_t> shared_row_;
};

inline const std::string kNowhere;

// What a block is made of.
struct BlockPlace {
  const std::string& name;              // in its graph; its parameters' names begin with it
  const std::string& where = kNowhere;  // GraphBlock::where
  std::span<const Shape> inputs;
  // For each input, the sequence whose positions its vectors are, if they are.
  std::span<const std::optional<SequenceId>> sequences = {};
  // For each input, whether its vectors come from those of a sequence through a block that does not
  // tell which positions are used.
  std::span<const char> padded = {};
  bool d_inputs = true;  // whether the gradient of any input is needed
  uint64_t seed = 0;     // of dropout
  ParameterLayout& parameters;
  BufferLayout& buffers;
  std::vector<ItemRequest>* items = nullptr;  // of all blocks

  // Returns the index of what the samples have of it in BlockPass::items.
  size_t RequestItem(ItemRequest request) const {
    items->push_back(std::move(request));
    return items->size() - 1;
  }

  // RejectBlock() of this one.
  [[noreturn]] void Reject(const std::string& what) const;
  // Of a block with one input.
  const Shape& input() const;
  // The same of one that must know which positions are used: what a concat gives does not tell.
  const Shape& positions() const;
  // Of all vectors of that input, or of one of several, which must have one dimension.
  int64_t DimOfAll() const {
    input();
    return DimOfAll(0);
  }
  int64_t DimOfAll(size_t input) const;
  // Of that input; none if it is none.
  std::optional<SequenceId> SequenceOf(size_t input) const {
    return input < sequences.size() ? sequences[input] : std::nullopt;
  }

 private:
  [[noreturn]] void RejectInputs(const std::string& advice) const;
};

// What passes of one thread work with.
struct BlockPass {
  const PackedParameters& parameters;
  std::span<BlockedMatrix> buffers;
  std::span<AlignedBuffer> rows;
  std::optional<TrainingPosition> training = {};  // unset in evaluation
  // For each sequence [n]: how many rows of it a sample has.
  std::span<const std::vector<int32_t>> lengths = {};
  std::span<const SampleItems> items = {};  // meaningless in evaluation
};

class Block {
 public:
  // All have n rows, except for sequences in rows (VectorLayout). An input may be the first part of
  // the output in the same matrix (`concat`).
  using Inputs = std::span<const BlockedMatrix* const>;

  virtual ~Block() = default;

  const Shape& shape() const { return shape_; }  // of the output
  // The sequence whose positions the output's vectors are, if they are.
  const std::optional<SequenceId>& sequence() const { return sequence_; }

  // How it takes an input that is a sequence, and how it gives what it gives. A block that gives a
  // sequence takes all of its inputs that are one in rows.
  virtual VectorLayout TakesAs(size_t /*input*/) const {
    return NewestNeeds() == Needs::kNewest ? GivesAs()
           : sequence_                     ? VectorLayout::kRows
                                           : VectorLayout::kColumns;
  }
  VectorLayout GivesAs() const {
    if (!sequence_) return VectorLayout::kColumns;
    return only_newest_ ? VectorLayout::kNewest : VectorLayout::kRows;
  }
  // What it needs of its inputs to give each sample's newest position alone.
  enum class Needs { kUnable, kNewest, kAll };
  virtual Needs NewestNeeds() const { return Needs::kUnable; }
  // From now on it gives nothing else, because nothing reads anything else.
  void GiveOnlyNewest() { only_newest_ = true; }
  bool only_newest() const { return only_newest_; }
  // Whether the output is a logit, which may be float32 whatever the model's precision, and whether
  // an input may be. It is where it comes last or only blocks that can take it use it. Gradients
  // always have the model's precision.
  virtual bool GivesLogit() const { return false; }
  virtual bool TakesLogits() const { return false; }
  // Whether its logit means a probability, whatever it is trained by.
  virtual bool GivesProbability() const { return false; }
  // Whether its logit, in training, is the log odds of the query's item against negatives. In
  // evaluation it is the score of a match, which no probability can be told from.
  virtual bool ComparesItems() const { return false; }
  // Whether its logit, in evaluation, is the product of a query's vector, its first input, and an
  // item's, its second, but for a factor. Such a model can rank items (infer/rank_items.h).
  virtual bool IsMatch() const { return false; }
  // Whether this input is a feature's negatives, which predictions lack (SequenceInput). No other
  // input may be, unless the output is the same sequence.
  virtual bool TakesNegatives(size_t /*input*/) const { return false; }
  // The first column that this input has in the output, if the output contains it as it is.
  virtual std::optional<int64_t> ColumnOf(size_t /*input*/) const { return std::nullopt; }
  // Arithmetic operations for one sample, forward and backward; a multiply-add counts as two. Of a
  // sequence, all positions count, unless only the newest one is computed.
  // `d_inputs`: whether the gradients of the inputs are needed.
  virtual double Flops(bool d_inputs) const = 0;
  // The same for each pair of samples of a virtual worker, of blocks that compare them.
  virtual double FlopsPerPair(bool /*d_inputs*/) const { return 0; }
  // Whether what it gives for a sample in training is compared with other samples' values, so that
  // a virtual worker needs several.
  virtual bool ComparesSamples() const { return false; }

  virtual void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const = 0;

  // After Forward: from d_output (destroyed), adds the gradients of the parameters and writes those
  // of the inputs, except where d_inputs has null.
  virtual void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix& output,
                        BlockedMatrix* d_output, WeightGradients* gradients,
                        std::span<BlockedMatrix* const> d_inputs) const = 0;

 protected:
  // Of a sample's output, the columns that it computes.
  int64_t ComputedColumns() const {
    return only_newest_ ? ColumnsOf(shape_) / static_cast<int64_t>(shape_.size())
                        : ColumnsOf(shape_);
  }

  explicit Block(Shape shape, std::optional<SequenceId> sequence = std::nullopt)
      : shape_(std::move(shape)), sequence_(sequence) {}

 private:
  Shape shape_;
  std::optional<SequenceId> sequence_;
  bool only_newest_ = false;
};

// The options of a block of any type: a copyable value that holds a struct such as Mlp. Such a
// struct has the type's name (`kType`), describes its options for the configuration and makes the
// block, or throws kConfig if the place does not fit.
class BlockOptions {
 public:
  template <typename Type>
  requires requires { Type::kType; }
  BlockOptions(Type options) : held_(std::make_unique<Holds<Type>>(std::move(options))) {}
  BlockOptions(const BlockOptions& other) : held_(other.held_->Clone()) {}
  BlockOptions(BlockOptions&&) = default;
  BlockOptions& operator=(BlockOptions other) {
    held_ = std::move(other.held_);
    return *this;
  }

  const char* type() const { return held_->type(); }
  void Describe(ConfigFields& fields) { held_->Describe(fields); }
  std::unique_ptr<Block> Make(const BlockPlace& place) const { return held_->Make(place); }

 private:
  struct Held {
    virtual ~Held() = default;
    virtual std::unique_ptr<Held> Clone() const = 0;
    virtual const char* type() const = 0;
    virtual void Describe(ConfigFields& fields) = 0;
    virtual std::unique_ptr<Block> Make(const BlockPlace& place) const = 0;
  };
  template <typename Type>
  struct Holds final : Held {
    explicit Holds(Type its) : options(std::move(its)) {}
    std::unique_ptr<Held> Clone() const override { return std::make_unique<Holds>(options); }
    const char* type() const override { return Type::kType; }
    void Describe(ConfigFields& fields) override { options.Describe(fields); }
    std::unique_ptr<Block> Make(const BlockPlace& place) const override {
      return options.Make(place);
    }
    Type options;
  };
  std::unique_ptr<Held> held_;
};

}  // namespace renzan
