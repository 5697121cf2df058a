#pragma once

// Writes a structured array in NumPy's .npy format, version 1.0: a field for each column, which
// numpy.load reads without pickle. Rows are packed and counted as they come. Not thread-safe.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/base/file/file.h"

namespace renzan {

struct NpyField {
  enum class Type { kFloat, kInt64, kText, kBytes };  // <f4, <i8, <U of UTF-8, |S
  std::string name;
  Type type = Type::kFloat;
  int64_t width = 1;  // of texts: the most characters that one has, or bytes of kBytes
};

class NpyTableWriter {
 public:
  // Throws kUsage, before there is a file, if NumPy would not read it: it refuses headers of more
  // than 10,000 characters, and rows of 2 GiB.
  NpyTableWriter(std::string path, std::vector<NpyField> fields);

  // Appends a value of the field's type; of each field one, in their order, then EndRow().
  void Append(size_t field, float value);
  void Append(size_t field, int64_t value);
  // `value` has no more characters than the width, and does not end in a zero byte, which NumPy
  // takes for none.
  void Append(size_t field, std::string_view value);
  void EndRow();

  // Writes the final header, fsyncs and closes. Without Close() the file is removed.
  void Close();

 private:
  void Next(size_t field, bool has_type);

  const std::vector<NpyField> fields_;
  const std::string descr_;
  int64_t rows_ = 0;
  FileWriter file_;
  std::string row_;
  size_t next_ = 0;
};

// How many characters of UTF-8 there are.
int64_t CountCharacters(std::string_view text);

}  // namespace renzan
