#include "renzan/base/file/same_path.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace renzan {
namespace {

TEST(IsSamePath, OneRunHasManySpellings) {
  const std::string here = std::filesystem::current_path().string();
  for (const std::string& other :
       {std::string("runs/a"), std::string("runs/a/"), std::string("./runs/a"),
        std::string("runs//./a//"), here + "/runs/a", here + "/./runs/a/"})
    EXPECT_TRUE(IsSamePath("runs/a", other)) << other;
  EXPECT_TRUE(IsSamePath("", ""));
  EXPECT_TRUE(IsSamePath("/", "//"));
  EXPECT_TRUE(IsSamePath("s3://bucket/a", "s3://bucket//a/"));
}

TEST(IsSamePath, OtherPlacesAreOthers) {
  for (const char* other : {"runs/b", "runs/a/b", "runs", "/runs/a", "", "runs/a.", ".runs/a",
                            "runs/link/../a", "s3://runs/a"})
    EXPECT_FALSE(IsSamePath("runs/a", other)) << other;
  EXPECT_FALSE(IsSamePath("", "."));
  EXPECT_FALSE(IsSamePath("s3://bucket/a", "s3://bucket/./a"));
}

}  // namespace
}  // namespace renzan
