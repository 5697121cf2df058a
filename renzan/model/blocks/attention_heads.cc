#include "renzan/model/blocks/attention_heads.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/model/blocks/attention_heads.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/model/small_product-inl.h"
#include "renzan/tensor/exp-inl.h"
#include "renzan/tensor/transpose-inl.h"

// Scores and weights are [vector j, vector i that attends to it]: so a vector of the machine holds
// one j for several i, and sums over j need no sums within it.

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using AttentionTag = hn::CappedTag<float, 16>;
using AttentionVector = hn::Vec<AttentionTag>;

// One head of a sample's attention.
class AttentionHead {
 public:
  AttentionHead(const AttentionHeads& heads, const AttentionValues& at, int64_t used, int64_t head)
      : heads_(heads),
        at_(at),
        used_(used),
        first_(head * heads.padded_dim()),
        lanes_(heads.lanes()),
        used_lanes_((used + 15) / 16 * 16),
        transposed_(at.scratch),
        weights_(transposed_ + heads.padded_dim() * lanes_),
        d_weights_(weights_ + heads.vectors * lanes_) {}

  void Forward() const {
    Scores();
    if (heads_.kind == AttentionHeads::kSoftmax) {
      Softmax();
    } else {
      Silu();
    }
    // Σ_j weight_ij value_j
    SmallProduct({weights_, 1, lanes_}, used_, used_, at_.value + first_, heads_.stride(),
                 heads_.padded_dim(), at_.output + first_, heads_.stride());
  }

  void Backward() const {
    Scores();
    if (heads_.kind == AttentionHeads::kSoftmax) Softmax();
    Transposed(at_.output);
    SmallProduct({at_.value + first_, heads_.stride(), 1}, used_, heads_.dim, transposed_, lanes_,
                 used_lanes_, d_weights_, lanes_);
    if (heads_.kind == AttentionHeads::kSoftmax) {
      ThroughSoftmax();
    } else {
      ThroughSilu();
    }
    const auto product = [&](const ScalarsAt& left, const float* vectors, float* to) HWY_ATTR {
      SmallProduct(left, used_, used_, vectors + first_, heads_.stride(), heads_.padded_dim(),
                   to + first_, heads_.stride());
    };
    product({weights_, lanes_, 1}, at_.output, at_.d_value);
    product({d_weights_, lanes_, 1}, at_.query, at_.d_key);
    product({d_weights_, 1, lanes_}, at_.key, at_.d_query);
  }

 private:
  // Of a head's part of `vectors`: then each is a column.
  void Transposed(const float* vectors) const {
    Transpose(vectors + first_, heads_.stride(), used_lanes_, heads_.padded_dim(), transposed_,
              lanes_);
  }

  // To weights_: the products of keys and queries.
  void Scores() const {
    Transposed(at_.query);
    SmallProduct({at_.key + first_, heads_.stride(), 1}, used_, heads_.dim, transposed_, lanes_,
                 used_lanes_, weights_, lanes_);
  }

  // Calls body(first i) for all i in whole vectors.
  template <class Body>
  HWY_INLINE void ForEachVector(const Body& body) const {
    for (int64_t i = 0; i < used_; i += static_cast<int64_t>(hn::Lanes(AttentionTag()))) body(i);
  }
  // Which of the vectors from `i` on see vector j.
  HWY_INLINE hn::Mask<AttentionTag> See(int64_t i, int64_t j) const {
    const AttentionTag d;
    if (!heads_.causal) return hn::Eq(hn::Zero(d), hn::Zero(d));
    return hn::Ge(hn::Iota(d, static_cast<float>(i)), hn::Set(d, static_cast<float>(j)));
  }

  void Softmax() const {
    const AttentionTag d;
    const auto scale = hn::Set(d, heads_.scale);
    ForEachVector([&](int64_t i) HWY_ATTR {
      // The first is seen by all.
      auto most = hn::Mul(hn::LoadU(d, weights_ + i), scale);
      for (int64_t j = 1; j < used_; ++j)
        most = hn::IfThenElse(
            See(i, j), hn::Max(most, hn::Mul(hn::LoadU(d, weights_ + j * lanes_ + i), scale)),
            most);
      auto sum = hn::Zero(d);
      for (int64_t j = 0; j < used_; ++j) {
        float* const weight = weights_ + j * lanes_ + i;
        const auto e = hn::IfThenElseZero(
            See(i, j), ExpOfNegative(d, hn::Sub(hn::Mul(hn::LoadU(d, weight), scale), most)));
        sum = hn::Add(sum, e);
        hn::StoreU(e, d, weight);
      }
      for (int64_t j = 0; j < used_; ++j) {
        float* const weight = weights_ + j * lanes_ + i;
        hn::StoreU(hn::Div(hn::LoadU(d, weight), sum), d, weight);
      }
    });
  }

  // From the gradient of the weights to that of the products:
  // scale · weight_j (d_weight_j − Σ weight · d_weight).
  void ThroughSoftmax() const {
    const AttentionTag d;
    const auto scale = hn::Set(d, heads_.scale);
    ForEachVector([&](int64_t i) HWY_ATTR {
      auto mean = hn::Zero(d);
      for (int64_t j = 0; j < used_; ++j)
        mean = hn::MulAdd(hn::LoadU(d, weights_ + j * lanes_ + i),
                          hn::LoadU(d, d_weights_ + j * lanes_ + i), mean);
      for (int64_t j = 0; j < used_; ++j) {
        const auto weight = hn::LoadU(d, weights_ + j * lanes_ + i);
        float* const d_weight = d_weights_ + j * lanes_ + i;
        hn::StoreU(hn::Mul(scale, hn::Mul(weight, hn::Sub(hn::LoadU(d, d_weight), mean))), d,
                   d_weight);
      }
    });
  }

  HWY_INLINE AttentionVector Score(int64_t i, int64_t j) const {
    const AttentionTag d;
    const auto score = hn::Mul(hn::LoadU(d, weights_ + j * lanes_ + i), hn::Set(d, heads_.scale));
    return at_.bias == nullptr ? score : hn::Add(score, hn::LoadU(d, at_.bias + lanes_ + i - j));
  }

  void Silu() const {
    const AttentionTag d;
    const auto n = hn::Set(d, static_cast<float>(heads_.vectors));
    ForEachVector([&](int64_t i) HWY_ATTR {
      for (int64_t j = 0; j < used_; ++j) {
        const auto score = Score(i, j);
        const auto weight = hn::Div(hn::Mul(score, Sigmoid(d, score)), n);
        hn::StoreU(hn::IfThenElseZero(See(i, j), weight), d, weights_ + j * lanes_ + i);
      }
    });
  }

  // The same, and from the gradient of the weights to that of the scores, which d_bias gets, and of
  // the products.
  void ThroughSilu() const {
    const AttentionTag d;
    const auto n = hn::Set(d, static_cast<float>(heads_.vectors)), one = hn::Set(d, 1.0f);
    ForEachVector([&](int64_t i) HWY_ATTR {
      for (int64_t j = 0; j < used_; ++j) {
        const auto score = Score(i, j), share = Sigmoid(d, score);
        const auto see = See(i, j);
        hn::StoreU(hn::IfThenElseZero(see, hn::Div(hn::Mul(score, share), n)), d,
                   weights_ + j * lanes_ + i);
        const auto slope =
            hn::Mul(share, hn::MulAdd(score, hn::Sub(one, share), one));  // σ (1 + z (1 − σ))
        float* const d_weight = d_weights_ + j * lanes_ + i;
        hn::StoreU(hn::IfThenElseZero(see, hn::Div(hn::Mul(hn::LoadU(d, d_weight), slope), n)), d,
                   d_weight);
      }
    });
    for (int64_t j = 0; j < used_ && at_.d_bias != nullptr; ++j)
      for (int64_t i = j; i < used_; ++i) at_.d_bias[i - j] += d_weights_[j * lanes_ + i];
    for (int64_t k = 0; k < used_ * lanes_; ++k) d_weights_[k] *= heads_.scale;
  }

  const AttentionHeads& heads_;
  const AttentionValues& at_;
  int64_t used_, first_;  // first_: column of the head
  int64_t lanes_, used_lanes_;
  float *transposed_, *weights_, *d_weights_;
};

void AttentionForward(const AttentionHeads& heads, const AttentionValues& at, int64_t used) {
  for (int64_t h = 0; h < heads.heads; ++h) AttentionHead(heads, at, used, h).Forward();
}
void AttentionBackward(const AttentionHeads& heads, const AttentionValues& at, int64_t used) {
  for (int64_t h = 0; h < heads.heads; ++h) AttentionHead(heads, at, used, h).Backward();
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(AttentionForward);
HWY_EXPORT(AttentionBackward);

// Column by column, as matrices hold them.
void AttentionHeads::Get(const BlockedMatrix& from, const VectorsAt& at, int64_t used,
                         float* to) const {
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t c = 0; c < dim; c += BlockedMatrix::kLanes) {
      const int64_t n = std::min(BlockedMatrix::kLanes, dim - c);
      float* const part = to + h * padded_dim() + c;
      for (int64_t v = 0; v < used; ++v)
        from.GetRow(at.row + v * at.row_step, at.column + v * at.column_step + h * dim + c,
                    part + v * stride(), n);
    }
}

void AttentionHeads::Set(const float* from, int64_t used, const VectorsAt& at,
                         BlockedMatrix* to) const {
  constexpr float zeros[BlockedMatrix::kLanes] = {};
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t c = 0; c < dim; c += BlockedMatrix::kLanes) {
      const int64_t n = std::min(BlockedMatrix::kLanes, dim - c);
      const float* const part = from + h * padded_dim() + c;
      for (int64_t v = 0; v < vectors; ++v)
        to->SetRow(at.row + v * at.row_step, at.column + v * at.column_step + h * dim + c,
                   v < used ? part + v * stride() : zeros, n);
    }
}

void AttentionHeads::Forward(const AttentionValues& at, int64_t used) const {
  if (used > 0) HWY_DYNAMIC_DISPATCH(AttentionForward)(*this, at, used);
}
void AttentionHeads::Backward(const AttentionValues& at, int64_t used) const {
  if (used > 0) HWY_DYNAMIC_DISPATCH(AttentionBackward)(*this, at, used);
}

}  // namespace renzan
#endif
