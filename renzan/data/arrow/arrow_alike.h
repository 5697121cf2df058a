#pragma once

// Which types of a column of several tables make one column: those in which the same value is read
// as the same text and the same number, whichever table comes first.

#include <string>

#include "renzan/data/arrow/arrow_values.h"

namespace renzan {

// Integers and floats of all sizes; strings and bytes, as views too; dates; timestamps of the same
// unit and time zone; bool; lists, of fixed size or not, of such items. Whether they are encoded as
// a dictionary does not matter, and null is like any type. So 2 and "2" are not alike, because "02"
// would be another value.
bool ReadsAlike(const ArrowType& a, const ArrowType& b);

// Whether it holds nothing but nulls, as which types like it are found: null, a list of nulls.
bool IsOnlyNull(const ArrowType& type);

// For messages: "int64", "timestamp[ms, UTC]", "list of string".
std::string DescribeType(const ArrowType& type);

}  // namespace renzan
