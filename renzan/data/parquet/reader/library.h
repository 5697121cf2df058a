#pragma once

// The functions of librenzan_parquet.so, which reads Parquet with Arrow's C++: a library of its
// own, because not every distribution has that. It is of the same build as the program, so that C++
// objects and exceptions may pass between the two.

#include <functional>
#include <string>
#include <vector>

struct ArrowArrayStream;

namespace renzan {

struct ParquetFile {
  std::string path;
  // By column of this name: whether it is read. Others hold nulls.
  std::function<std::vector<bool>(const std::vector<std::string>& names)> uses;
};

}  // namespace renzan

extern "C" {
const char* renzan_parquet_build();  // BuildId(). The only one that any build may call.
// The rows of the file as a stream, which the caller releases. Throws kNoInput or kData, with the
// file's name, if it cannot be read as Parquet.
void renzan_parquet_open(const renzan::ParquetFile* file, ArrowArrayStream* stream);
}
