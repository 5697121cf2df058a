#pragma once

// Thrift's compact protocol, as far as the metadata of a Parquet file needs it. Plain functions of
// their arguments.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace renzan {

// Writes one struct and what is in it. Fields come in ascending order of their ids.
class CompactThriftWriter {
 public:
  void I32(int id, int32_t value);
  void I64(int id, int64_t value);
  void Text(int id, std::string_view value);

  // Ended by EndStruct().
  void BeginStruct(int id);
  // Its elements follow: ElementI32(), ElementText(), or a struct each, begun by
  // BeginElementStruct() and ended by EndStruct().
  enum class Of { kI32 = 5, kText = 8, kStruct = 12 };
  void BeginList(int id, Of of, size_t size);
  void ElementI32(int32_t value);
  void ElementText(std::string_view value);
  void BeginElementStruct();
  void EndStruct();

  // Ends the outermost struct.
  std::string Finish();

 private:
  void Field(int id, int type);
  void Varint(uint64_t value);
  void Signed(int64_t value);

  std::string bytes_;
  std::string open_ = {0};  // the last field's id of each struct that is not ended
};

}  // namespace renzan
