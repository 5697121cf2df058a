#include "renzan/cuda/dense_layers.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/cuda/dropout.cuh"

namespace renzan::cuda {

ParameterPlaces::ParameterPlaces(const ParameterLayout& layout) : layout_(layout) {
  constexpr int64_t kAlign = 128;  // values: 256 bytes of bfloat16
  for (const Parameter& parameter : layout.parameters()) {
    const bool matrix = parameter.shape.size() == 2;
    const ParameterPlace place = {.offset = parameter.offset,
                                  .rows = matrix ? parameter.shape[0] : 1,
                                  .columns = parameter.shape.back(),
                                  .padded_offset = size_,
                                  .stride = Padded(parameter.shape.back())};
    places_.push_back(place);
    largest_ = std::max(largest_, parameter.size);
    const int64_t values = (matrix ? Padded(place.rows) : 1) * place.stride;
    size_ += (values + kAlign - 1) / kAlign * kAlign;
  }
}

const ParameterPlace& ParameterPlaces::of(const std::string& name) const {
  for (size_t i = 0; i < places_.size(); ++i)
    if (layout_.parameters()[i].name == name) return places_[i];
  Fail(ErrorCode::kSoftware, "there is no parameter {}", name);
}

LinearLayer::LinearLayer(const DenseContext& context, const std::string& weight,
                         const std::string& bias, Output output, bool accumulates_input_gradient)
    : weight_(context.places->of(weight)), output_(output) {
  if (!bias.empty()) bias_ = context.places->of(bias);
  using Epilogue = ProductShape::Epilogue;
  const int64_t n = context.rows, in_columns = in(), out_columns = out();
  const ProductShape::Operand x = {n, in_columns, in_columns, n * in_columns};
  const ProductShape::Operand y = {n, out_columns, out_columns, n * out_columns};
  const ProductShape::Operand w = {out_columns, in_columns, in_columns, 0};
  const auto transposed = [](ProductShape::Operand operand) {
    operand.transposed = true;
    return operand;
  };
  forward_.emplace(*context.products,
                   ProductShape{.a = x,
                                .b = transposed(w),
                                .out = y,
                                .float_out = output == Output::kLogit,
                                .epilogue = output == Output::kRelu ? Epilogue::kBiasRelu
                                            : bias_                 ? Epilogue::kBias
                                                                    : Epilogue::kNone});
  ProductShape::Operand gradient = w;
  gradient.of_virtual_worker = context.places->size();
  weight_gradient_.emplace(
      *context.products_beside,
      ProductShape{.a = transposed(y), .b = x, .out = gradient, .float_out = true});
  input_gradient_.emplace(
      *context.products,
      ProductShape{.a = y, .b = w, .out = x, .accumulate = accumulates_input_gradient});
}

void LinearLayer::Forward(const DenseContext& context, const void* x, void* y) const {
  const void* bias = nullptr;
  if (bias_) bias = output_ == Output::kLogit ? context.last_bias : context.weight(*bias_);
  forward_->Run(x, context.weight(weight_), bias, y, *context.stream);
}

void LinearLayer::BiasGradient(const DenseContext& context, const void* y, float scale,
                               void* dy) const {
  MaskAndSumColumns(context.Shape(out()), output_ == Output::kRelu ? y : nullptr, scale, dy,
                    *context.column_sums, context.gradient(*bias_), context.places->size(),
                    context.stream->get());
}

void LinearLayer::WeightGradient(const DenseContext& context, const void* x, const void* dy) const {
  context.fork->Record(context.stream->get());
  context.fork->Await(context.beside->get());
  weight_gradient_->Run(dy, x, nullptr, context.gradient(weight_), *context.beside);
}

void LinearLayer::InputGradient(const DenseContext& context, const void* dy, void* dx) const {
  input_gradient_->Run(dy, context.weight(weight_), nullptr, dx, *context.stream);
}

DeviceMlp::DeviceMlp(const DenseContext& context, const std::string& name, size_t layers,
                     bool ends_in_logit) {
  for (size_t i = 0; i < layers; ++i) {
    const std::string prefix = fmt::format("{}.{}", name, i);
    const bool last = i + 1 == layers, logit = ends_in_logit && last;
    layers_.emplace_back(context, prefix + ".weight", prefix + ".bias",
                         logit ? LinearLayer::Output::kLogit : LinearLayer::Output::kRelu);
    dropouts_.emplace_back();
    if (context.dropout.rate > 0 && !last) dropouts_.back().emplace(context.dropout, prefix);
    activations_.push_back(context.Matrix(layers_.back().out(), logit));
    if (i > 0) d_hidden_.push_back(context.Matrix(layers_.back().in()));
  }
}

void DeviceMlp::Forward(const DenseContext& context, const void* x, const int64_t* step) const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    void* const y = activations_[i].as<void>();
    layers_[i].Forward(context, x, y);
    if (dropouts_[i] && step != nullptr)
      ApplyDropout(*dropouts_[i], step, context.first_sample, context.all_rows(),
                   layers_[i].units(), layers_[i].out(), context.precision, y,
                   context.stream->get());
    x = y;
  }
}

// Activations that dropout zeroed look like those of an inactive ReLU.
void DeviceMlp::Backward(const DenseContext& context, const void* x, void* dy, void* dx) const {
  for (size_t i = layers_.size(); i-- > 0;) {
    const void* in = i == 0 ? x : activations_[i - 1].as<void>();
    layers_[i].BiasGradient(context, activations_[i].as<void>(),
                            dropouts_[i] ? dropouts_[i]->scale() : 1.0f, dy);
    layers_[i].WeightGradient(context, in, dy);
    void* const d_in = i == 0 ? dx : d_hidden_[i - 1].as<void>();
    if (d_in == nullptr) return;
    layers_[i].InputGradient(context, dy, d_in);
    dy = d_in;
  }
}

DeviceCross::DeviceCross(const DenseContext& context, int layers, int64_t width) : width_(width) {
  using Output = LinearLayer::Output;
  for (int l = 0; l < layers; ++l) {
    const std::string prefix = fmt::format("cross.{}.", l);
    layers_.push_back({LinearLayer(context, prefix + "v", "", Output::kLinear, true),
                       LinearLayer(context, prefix + "w", prefix + "bias", Output::kLinear),
                       context.places->of(prefix + "bias")});
    projected_.push_back(context.Matrix(layers_.back().v.out()));
    crossed_.push_back(context.Matrix(width));
    outputs_.push_back(context.Matrix(width));
    d_crossed_.push_back(context.Matrix(width));
    d_projected_.push_back(context.Matrix(layers_.back().v.out()));
  }
}

void DeviceCross::Forward(const DenseContext& context, const void* x0) const {
  const void* x = x0;
  for (size_t l = 0; l < layers_.size(); ++l) {
    layers_[l].v.Forward(context, x, projected_[l].as<void>());
    layers_[l].w.Forward(context, projected_[l].as<void>(), crossed_[l].as<void>());
    CrossForward(context.all_rows() * width_, context.precision, x0, crossed_[l].as<void>(), x,
                 outputs_[l].as<void>(), context.stream->get());
    x = outputs_[l].as<void>();
  }
}

void DeviceCross::Backward(const DenseContext& context, const void* x0, void* dy,
                           void* d_x0) const {
  for (size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    const void* x = l == 0 ? x0 : outputs_[l - 1].as<void>();
    void* const d_crossed = d_crossed_[l].as<void>();
    void* const d_projected = d_projected_[l].as<void>();
    // The first layer's input is x0, so its residual belongs to d_x0.
    CrossBackward(context.Shape(width_), dy, x0, crossed_[l].as<void>(),
                  {.accumulate = l + 1 < layers_.size(), .residual = l == 0}, d_crossed, d_x0,
                  *context.column_sums, context.gradient(layer.bias), context.places->size(),
                  context.stream->get());
    layer.w.WeightGradient(context, projected_[l].as<void>(), d_crossed);
    layer.w.InputGradient(context, d_crossed, d_projected);
    layer.v.WeightGradient(context, x, d_projected);
    // The gradient of x also comes through the residual: it is added to dy.
    layer.v.InputGradient(context, d_projected, l == 0 ? d_x0 : dy);
  }
}

}  // namespace renzan::cuda
