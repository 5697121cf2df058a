#include "renzan/model/blocks/project.h"

#include <algorithm>

#include "renzan/base/config/config.h"
#include "renzan/base/trace.h"
#include "renzan/model/blocks/per_vector.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

Shape WithDim(Shape shape, int64_t dim) {
  for (FeatureVector& vector : shape) vector.dim = dim;
  return shape;
}

class ProjectBlock final : public Block {
 public:
  // `shared`: of one vector, with a matrix that is named after no vector.
  ProjectBlock(int64_t dim, const BlockPlace& place, bool shared = false)
      : Block(WithDim(place.input(), dim)), dim_(dim) {
    int64_t column = 0, widest = 0;
    for (const FeatureVector& input : place.input()) {
      Vector vector{.column = column, .dim = input.dim, .projected = input.dim != dim};
      if (vector.projected) {
        const std::string prefix = shared ? place.name : place.name + "." + input.name;
        vector.weight =
            place.parameters.Add(prefix + ".weight", {dim, input.dim}, Initializer::kXavierNormal);
        vector.copy = place.buffers.Add(input.dim);
        widest = std::max(widest, input.dim);
      }
      vectors_.push_back(vector);
      column += input.dim;
    }
    d_copy_ = place.buffers.Add(widest);
    result_ = place.buffers.Add(dim);
  }

  double Flops(bool d_inputs) const override {
    double weights = 0;
    for (const Vector& vector : vectors_)
      if (vector.projected) weights += static_cast<double>(vector.dim * dim_);
    return (d_inputs ? 6 : 4) * weights;
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("projections");
    BlockedMatrix& result = pass.buffers[result_];
    int64_t to = 0;
    for (const Vector& vector : vectors_) {
      if (vector.projected) {
        BlockedMatrix& copy = pass.buffers[vector.copy];
        copy.SetColumns(0, *inputs.front(), vector.column, vector.dim);
        Gemm(copy, pass.parameters.weight(vector.weight).transposed, {}, &result);
        output->SetColumns(to, result, 0, dim_);
      } else {
        output->SetColumns(to, *inputs.front(), vector.column, dim_);
      }
      to += dim_;
    }
  }

  void Backward(const BlockPass& pass, Inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("projections");
    BlockedMatrix &d_result = pass.buffers[result_], &d_copy = pass.buffers[d_copy_];
    BlockedMatrix* const d_input = d_inputs.front();
    int64_t from = 0;
    for (const Vector& vector : vectors_) {
      if (vector.projected) {
        d_result.SetColumns(0, *d_output, from, dim_);
        gradients->Add(d_result, pass.buffers[vector.copy], vector.weight, std::nullopt);
      }
      if (vector.projected && d_input != nullptr) {
        d_copy.Reshape(d_copy.rows(), vector.dim, d_copy.precision());
        Gemm(d_result, pass.parameters.weight(vector.weight).straight, {}, &d_copy);
        d_input->SetColumns(vector.column, d_copy, 0, vector.dim);
      } else if (d_input != nullptr) {
        d_input->SetColumns(vector.column, *d_output, from, dim_);
      }
      from += dim_;
    }
  }

 private:
  struct Vector {
    int64_t column, dim;     // in the input
    bool projected = false;  // otherwise copied
    int64_t weight = 0;      // offset of the parameter
    size_t copy = 0;         // buffer of the input's columns
  };
  int64_t dim_;
  std::vector<Vector> vectors_;
  size_t d_copy_, result_;  // buffers; the second also of the result's gradient
};

}  // namespace

void Project::Describe(ConfigFields& fields) {
  fields.Range("dim", &dim, 1, kMaxWidth);
  fields.Require(dim > 0, "dim", "is missing: say how many columns");
}

std::unique_ptr<Block> Project::Make(const BlockPlace& place) const {
  bool is_sequence = false;
  for (size_t i = 0; i < place.inputs.size(); ++i) is_sequence |= place.SequenceOf(i).has_value();
  if (!is_sequence) return std::make_unique<ProjectBlock>(dim, place);
  place.positions();
  return MakePerVector(place, [this](const BlockPlace& of_one) {
    return std::make_unique<ProjectBlock>(dim, of_one, true);
  });
}

}  // namespace renzan
