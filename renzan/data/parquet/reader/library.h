#pragma once

// The functions of librenzan_parquet.so, which reads Parquet with Arrow's C++: a library of its
// own, because not every distribution has that. It is of the same build as the program, so that C++
// objects and exceptions may pass between the two.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct ArrowArrayStream;

namespace renzan {

struct ParquetFiles {
  std::vector<std::string> paths;
  // By column of this name: whether it is read. Others hold nulls.
  std::function<std::vector<bool>(const std::vector<std::string>& names)> uses;
};

}  // namespace renzan

extern "C" {
const char* renzan_parquet_build();  // BuildId(). The only one that any build may call.
// The rows of all files, in order, as a stream that the caller releases; no batch has rows of two
// files. `rows` gets the number of each file. Throws kNoInput or kData, with the file's name, if
// one cannot be read as Parquet or has other columns than the first.
void renzan_parquet_open(const renzan::ParquetFiles* files, ArrowArrayStream* stream,
                         std::vector<int64_t>* rows);
}
