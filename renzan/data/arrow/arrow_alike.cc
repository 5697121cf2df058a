#include "renzan/data/arrow/arrow_alike.h"

#include <fmt/format.h>

#include "renzan/base/escape.h"

namespace renzan {

bool ReadsAlike(const ArrowType& a, const ArrowType& b) {
  if (a.kind == ArrowKind::kNull || b.kind == ArrowKind::kNull) return true;
  if (a.is_list() && b.is_list()) return ReadsAlike(*a.item, *b.item);
  if (a.is_list() || b.is_list()) return false;
  if (a.is_text() || b.is_text()) return a.is_text() && b.is_text();
  if (a.kind == ArrowKind::kTimestamp && b.kind == ArrowKind::kTimestamp)
    return a.units_per_second == b.units_per_second && a.zone == b.zone;
  if (a.kind == ArrowKind::kTimestamp || b.kind == ArrowKind::kTimestamp) return false;
  if (a.is_time() || b.is_time()) return a.is_time() && b.is_time();
  if (a.kind == ArrowKind::kOther || b.kind == ArrowKind::kOther) return a.name == b.name;
  if (a.kind == ArrowKind::kBool || b.kind == ArrowKind::kBool) return a.kind == b.kind;
  return true;  // numbers
}

bool IsOnlyNull(const ArrowType& type) {
  return type.kind == ArrowKind::kNull || (type.is_list() && IsOnlyNull(*type.item));
}

std::string DescribeType(const ArrowType& type) {
  if (type.is_list()) return "list of " + DescribeType(*type.item);
  if (type.kind != ArrowKind::kTimestamp) return type.name;
  const char* const unit = type.units_per_second == 1           ? "s"
                           : type.units_per_second == 1000      ? "ms"
                           : type.units_per_second == 1'000'000 ? "us"
                                                                : "ns";
  return fmt::format("timestamp[{}{}{}]", unit, type.zone.empty() ? "" : ", ", Escape(type.zone));
}

}  // namespace renzan
