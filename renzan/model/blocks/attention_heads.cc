#include "renzan/model/blocks/attention_heads.h"

#include <algorithm>
#include <cstring>

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

// Of vectors that are seen and of those that see them.
constexpr int64_t kVectorBlock = 16;

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
    OverSeen(weights_, at_.value, at_.output);
  }

  void Backward() const {
    Scores();
    if (heads_.kind == AttentionHeads::kSoftmax) Softmax();
    Products(at_.value, at_.output, d_weights_);
    if (heads_.kind == AttentionHeads::kSoftmax) {
      ThroughSoftmax();
    } else {
      ThroughSilu();
    }
    OverSeers(weights_, at_.output, at_.d_value);
    OverSeers(d_weights_, at_.query, at_.d_key);
    OverSeen(d_weights_, at_.key, at_.d_query);
  }

 private:
  // Calls body(first vector, count) for blocks of vectors. Pairs of two blocks are computed, or not
  // even written, as a whole: of causal attention those where a vector sees another. Terms that are
  // left out are zeros that would end or begin a sum.
  template <class Body>
  HWY_INLINE void ForEachBlock(const Body& body) const {
    for (int64_t first = 0; first < used_; first += kVectorBlock)
      body(first, std::min(kVectorBlock, used_ - first));
  }
  // The end of the vectors j that vectors of the block of i see.
  HWY_INLINE int64_t EndOfSeen(int64_t i) const {
    return heads_.causal ? std::min(used_, i / kVectorBlock * kVectorBlock + kVectorBlock) : used_;
  }
  // The first of the vectors that see vectors of the block from j on.
  HWY_INLINE int64_t FirstSeer(int64_t j) const { return heads_.causal ? j : 0; }

  // to[j, i] = <left_j, right_i>
  void Products(const float* left, const float* right, float* to) const {
    Transpose(right + first_, heads_.stride(), used_lanes_, heads_.padded_dim(), transposed_,
              lanes_);
    ForEachBlock([&](int64_t j, int64_t count) HWY_ATTR {
      const int64_t i = FirstSeer(j);
      SmallProduct({left + j * heads_.stride() + first_, heads_.stride(), 1}, count, heads_.dim,
                   transposed_ + i, lanes_, used_lanes_ - i, to + j * lanes_ + i, lanes_);
    });
  }
  // to_i = Σ_j factors[j, i] vectors_j
  void OverSeen(const float* factors, const float* vectors, float* to) const {
    ForEachBlock([&](int64_t i, int64_t count) HWY_ATTR {
      SmallProduct({factors + i, 1, lanes_}, count, EndOfSeen(i), vectors + first_, heads_.stride(),
                   heads_.padded_dim(), to + i * heads_.stride() + first_, heads_.stride());
    });
  }
  // to_j = Σ_i factors[j, i] vectors_i
  void OverSeers(const float* factors, const float* vectors, float* to) const {
    ForEachBlock([&](int64_t j, int64_t count) HWY_ATTR {
      const int64_t i = FirstSeer(j);
      SmallProduct({factors + j * lanes_ + i, lanes_, 1}, count, used_ - i,
                   vectors + i * heads_.stride() + first_, heads_.stride(), heads_.padded_dim(),
                   to + j * heads_.stride() + first_, heads_.stride());
    });
  }

  // To weights_: the products of keys and queries.
  void Scores() const { Products(at_.key, at_.query, weights_); }

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
      const int64_t end = EndOfSeen(i);
      for (int64_t j = 1; j < end; ++j)
        most = hn::IfThenElse(
            See(i, j), hn::Max(most, hn::Mul(hn::LoadU(d, weights_ + j * lanes_ + i), scale)),
            most);
      auto sum = hn::Zero(d);
      for (int64_t j = 0; j < end; ++j) {
        float* const weight = weights_ + j * lanes_ + i;
        const auto e = hn::IfThenElseZero(
            See(i, j), ExpOfNegative(d, hn::Sub(hn::Mul(hn::LoadU(d, weight), scale), most)));
        sum = hn::Add(sum, e);
        hn::StoreU(e, d, weight);
      }
      for (int64_t j = 0; j < end; ++j) {
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
      const int64_t end = EndOfSeen(i);
      auto mean = hn::Zero(d);
      for (int64_t j = 0; j < end; ++j)
        mean = hn::MulAdd(hn::LoadU(d, weights_ + j * lanes_ + i),
                          hn::LoadU(d, d_weights_ + j * lanes_ + i), mean);
      for (int64_t j = 0; j < end; ++j) {
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
      const int64_t end = EndOfSeen(i);
      for (int64_t j = 0; j < end; ++j) {
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
      const int64_t end = EndOfSeen(i);
      for (int64_t j = 0; j < end; ++j) {
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
    for (int64_t j = 0; j < used_ && heads_.scale != 1; ++j)
      for (int64_t i = FirstSeer(j / kVectorBlock * kVectorBlock); i < used_; ++i)
        d_weights_[j * lanes_ + i] *= heads_.scale;
  }

  const AttentionHeads& heads_;
  const AttentionValues& at_;
  int64_t used_, first_;  // first_: column of the head
  int64_t lanes_, used_lanes_;
  float *transposed_, *weights_, *d_weights_;
};

// The newest vector's attention in one head: it sees all. Scores and weights are [vector j].
class NewestHead {
 public:
  NewestHead(const AttentionHeads& heads, const AttentionValues& at, int64_t used, int64_t head)
      : heads_(heads),
        at_(at),
        used_(used),
        first_(head * heads.padded_dim()),
        lanes_(heads.lanes()),
        transposed_(at.scratch),
        weights_(transposed_ + heads.padded_dim() * lanes_),
        d_weights_(weights_ + lanes_),
        slopes_(d_weights_ + lanes_) {}

  void Forward() const {
    Weights();
    SumOf(weights_, at_.value, at_.output);
  }

  void Backward() const {
    Weights();
    Products(at_.value, at_.output, d_weights_);
    ThroughWeights();
    MultiplesOf(at_.output, weights_, at_.d_value);
    MultiplesOf(at_.query, d_weights_, at_.d_key);
    SumOf(d_weights_, at_.key, at_.d_query);
  }

 private:
  // to[j] = <vectors_j, one>
  void Products(const float* vectors, const float* one, float* to) const {
    const int64_t used_lanes = (used_ + 15) / 16 * 16;
    Transpose(vectors + first_, heads_.stride(), used_lanes, heads_.padded_dim(), transposed_,
              lanes_);
    SmallProduct({one + first_, heads_.stride(), 1}, 1, heads_.dim, transposed_, lanes_, used_lanes,
                 to, lanes_);
  }
  // to = Σ_j factors[j] vectors_j
  void SumOf(const float* factors, const float* vectors, float* to) const {
    SmallProduct({factors, lanes_, 1}, 1, used_, vectors + first_, heads_.stride(),
                 heads_.padded_dim(), to + first_, heads_.stride());
  }
  // to_j = factors[j] one
  void MultiplesOf(const float* one, const float* factors, float* to) const {
    SmallProduct({factors, 1, 1}, used_, 1, one + first_, heads_.stride(), heads_.padded_dim(),
                 to + first_, heads_.stride());
  }

  // Calls body(first j) for all j in whole vectors: what is beyond the last means nothing.
  template <class Body>
  HWY_INLINE void ForEachVector(const Body& body) const {
    for (int64_t j = 0; j < used_; j += static_cast<int64_t>(hn::Lanes(AttentionTag()))) body(j);
  }

  // Of kSilu also to slopes_: the derivatives by the scores.
  void Weights() const {
    const AttentionTag d;
    Products(at_.key, at_.query, weights_);
    for (int64_t j = 0; j < used_; ++j) {
      weights_[j] *= heads_.scale;
      if (at_.bias != nullptr) weights_[j] += at_.bias[lanes_ + used_ - 1 - j];
    }
    if (heads_.kind == AttentionHeads::kSilu) {
      const auto n = hn::Set(d, static_cast<float>(heads_.vectors)), one = hn::Set(d, 1.0f);
      ForEachVector([&](int64_t j) HWY_ATTR {
        const auto score = hn::LoadU(d, weights_ + j), share = Sigmoid(d, score);
        hn::StoreU(hn::Div(hn::Mul(score, share), n), d, weights_ + j);
        const auto inner = hn::Add(hn::Mul(score, hn::Sub(one, share)), one);
        hn::StoreU(hn::Div(hn::Mul(share, inner), n), d, slopes_ + j);
      });
      return;
    }
    const auto most = hn::Set(d, *std::max_element(weights_, weights_ + used_));
    ForEachVector([&](int64_t j) HWY_ATTR {
      hn::StoreU(ExpOfNegative(d, hn::Sub(hn::LoadU(d, weights_ + j), most)), d, weights_ + j);
    });
    float sum = 0;
    for (int64_t j = 0; j < used_; ++j) sum += weights_[j];
    for (int64_t j = 0; j < used_; ++j) weights_[j] /= sum;
  }

  // From the gradient of the weights to that of the products.
  void ThroughWeights() const {
    if (heads_.kind == AttentionHeads::kSilu) {
      for (int64_t j = 0; j < used_; ++j) d_weights_[j] *= slopes_[j];
      for (int64_t j = 0; j < used_ && at_.d_bias != nullptr; ++j)
        at_.d_bias[used_ - 1 - j] += d_weights_[j];
      for (int64_t j = 0; j < used_; ++j) d_weights_[j] *= heads_.scale;
      return;
    }
    float mean = 0;
    for (int64_t j = 0; j < used_; ++j) mean += weights_[j] * d_weights_[j];
    for (int64_t j = 0; j < used_; ++j)
      d_weights_[j] = heads_.scale * (weights_[j] * (d_weights_[j] - mean));
  }

  const AttentionHeads& heads_;
  const AttentionValues& at_;
  int64_t used_, first_, lanes_;  // first_: column of the head
  float *transposed_, *weights_, *d_weights_, *slopes_;
};

void NewestForward(const AttentionHeads& heads, const AttentionValues& at, int64_t used) {
  for (int64_t h = 0; h < heads.heads; ++h) NewestHead(heads, at, used, h).Forward();
}
void NewestBackward(const AttentionHeads& heads, const AttentionValues& at, int64_t used) {
  for (int64_t h = 0; h < heads.heads; ++h) NewestHead(heads, at, used, h).Backward();
}

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
HWY_EXPORT(NewestForward);
HWY_EXPORT(NewestBackward);

namespace {

template <int64_t kCount>
void CopyLinesOf(const float* from, int64_t from_step, int64_t lines, float* to, int64_t to_step) {
  for (int64_t line = 0; line < lines; ++line, from += from_step, to += to_step)
    std::memcpy(to, from, kCount * sizeof(float));  // inlined, because the size is known
}

// Up to 16 values of each line.
void CopyLines(const float* from, int64_t from_step, int64_t lines, int64_t count, float* to,
               int64_t to_step) {
  while (count > 0) {
    const int64_t now = count >= 16 ? 16 : count >= 8 ? 8 : count >= 4 ? 4 : 1;
    if (now == 16) CopyLinesOf<16>(from, from_step, lines, to, to_step);
    if (now == 8) CopyLinesOf<8>(from, from_step, lines, to, to_step);
    if (now == 4) CopyLinesOf<4>(from, from_step, lines, to, to_step);
    if (now == 1) CopyLinesOf<1>(from, from_step, lines, to, to_step);
    from += now;
    to += now;
    count -= now;
  }
}

// Calls body(column, column of AttentionValues, count) for the parts of a vector that begins at
// column `first` of a matrix, each within one block.
template <typename Body>
void ForEachPart(const AttentionHeads& heads, int64_t first, const Body& body) {
  constexpr int64_t kLanes = BlockedMatrix::kLanes;
  for (int64_t h = 0; h < heads.heads; ++h)
    for (int64_t c = 0, count; c < heads.dim; c += count) {
      const int64_t column = first + h * heads.dim + c;
      count = std::min(kLanes - column % kLanes, heads.dim - c);
      body(column, h * heads.padded_dim() + c, count);
    }
}

// Whether the vectors are lines of a block, one after the other.
bool AreLines(const BlockedMatrix& matrix, const VectorsAt& at) {
  return matrix.precision() == Precision::kFloat32 && at.row_step == 1 && at.column_step == 0;
}

}  // namespace

// Column by column, as matrices hold them.
void AttentionHeads::Get(const BlockedMatrix& from, const VectorsAt& at, int64_t used,
                         float* to) const {
  constexpr int64_t kLanes = BlockedMatrix::kLanes;
  ForEachPart(*this, at.column, [&](int64_t column, int64_t c, int64_t count) {
    if (AreLines(from, at))
      return CopyLines(from.block(column / kLanes) + at.row * kLanes + column % kLanes, kLanes,
                       used, count, to + c, stride());
    for (int64_t v = 0; v < used; ++v)
      from.GetRow(at.row + v * at.row_step, column + v * at.column_step, to + v * stride() + c,
                  count);
  });
}

void AttentionHeads::Set(const float* from, int64_t used, const VectorsAt& at,
                         BlockedMatrix* to) const {
  constexpr int64_t kLanes = BlockedMatrix::kLanes;
  ForEachPart(*this, at.column, [&](int64_t column, int64_t c, int64_t count) {
    if (AreLines(*to, at))
      return CopyLines(from + c, stride(), used, count,
                       to->block(column / kLanes) + at.row * kLanes + column % kLanes, kLanes);
    for (int64_t v = 0; v < used; ++v)
      to->SetRow(at.row + v * at.row_step, column + v * at.column_step, from + v * stride() + c,
                 count);
  });
}

void AttentionHeads::Forward(const AttentionValues& at, int64_t used) const {
  if (used > 0) HWY_DYNAMIC_DISPATCH(AttentionForward)(*this, at, used);
}
void AttentionHeads::Backward(const AttentionValues& at, int64_t used) const {
  if (used > 0) HWY_DYNAMIC_DISPATCH(AttentionBackward)(*this, at, used);
}

void AttentionHeads::ForwardNewest(const AttentionValues& at, int64_t used) const {
  if (used > 0) HWY_DYNAMIC_DISPATCH(NewestForward)(*this, at, used);
}
void AttentionHeads::BackwardNewest(const AttentionValues& at, int64_t used) const {
  if (used > 0) HWY_DYNAMIC_DISPATCH(NewestBackward)(*this, at, used);
}

}  // namespace renzan
#endif
