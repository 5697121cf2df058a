#include "renzan/base/error.h"
#include "renzan/capi/comm.h"
#include "renzan/capi/guard.h"
#include "renzan/tensor/float_codec.h"

using namespace renzan;
using namespace renzan::capi;

namespace {

FloatType SixteenBits(renzan_dtype type) {
  if (type == RENZAN_FLOAT16) return FloatType::kFloat16;
  if (type == RENZAN_BFLOAT16) return FloatType::kBFloat16;
  Fail(ErrorCode::kUsage, "float32 is encoded as float16 or bfloat16, not as {}",
       Name(ElementOf(type)));
}

}  // namespace

renzan_status renzan_encode(const float* values, size_t count, renzan_dtype type, void* encoded) {
  return Guard([&] {
    const FloatType to = SixteenBits(type);
    if (count == 0) return;
    NeedsArgument(values, "values");
    NeedsArgument(encoded, "encoded");
    Encode(to, {values, count}, static_cast<std::byte*>(encoded));
  });
}

renzan_status renzan_decode(const void* encoded, size_t count, renzan_dtype type, float* values) {
  return Guard([&] {
    const FloatType from = SixteenBits(type);
    if (count == 0) return;
    NeedsArgument(encoded, "encoded");
    NeedsArgument(values, "values");
    Decode(from, static_cast<const std::byte*>(encoded), {values, count});
  });
}
