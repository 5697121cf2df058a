#pragma once

// How blocks and graphs are refused. Apart from block.h, which CUDA's compiler reads.

#include <string>
#include <utility>

#include "renzan/base/error.h"

namespace renzan {

// What is wrong with a block or with the graph around it. The message begins with where the
// configuration states the block, if it does.
class BlockError : public Error {
 public:
  BlockError(std::string where, const std::string& problem)
      : Error(ErrorCode::kConfig, where.empty() ? problem : where + ": " + problem),
        where_(std::move(where)),
        problem_(problem) {}
  const std::string& where() const { return where_; }      // "config.yaml:23:5" or ""
  const std::string& problem() const { return problem_; }  // the message without it

 private:
  std::string where_, problem_;
};

// Throws BlockError: "WHERE: block NAME WHAT", or without a space where `what` begins with a colon.
[[noreturn]] void RejectBlock(const std::string& where, const std::string& name,
                              const std::string& what);

}  // namespace renzan
