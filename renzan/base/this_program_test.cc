#include "renzan/base/this_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(ThisProgram, IsThisTest) {
  EXPECT_THAT(ThisProgram(), EndsWith("/base_test"));
  EXPECT_TRUE(FileExists(ThisProgram()));
}

TEST(ThisProgram, WithoutProcIsWhatWasStarted) {
  const TemporaryDirectory directory;
  WriteFileAtomically(directory / "program", "");
  std::filesystem::create_symlink(directory / "program", directory / "link");
  const std::string program = std::filesystem::canonical(directory / "program");
  EXPECT_EQ(ThisProgram(directory / "none", (directory / "program").c_str()), program);
  EXPECT_EQ(ThisProgram(directory / "none", (directory / "link").c_str()), program);
}

TEST(ThisProgram, ThatCannotBeFoundIsOneError) {
  const TemporaryDirectory directory;
  try {
    ThisProgram(directory / "none", "gone/program");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_status(), static_cast<int>(ErrorCode::kOsError));
    EXPECT_THAT(error.what(), HasSubstr("none/self/exe: No such file or directory"));
    EXPECT_THAT(error.what(), HasSubstr("gone/program: No such file or directory"));
    EXPECT_THAT(error.what(), EndsWith("mount /proc, or start the program by its full path"));
  }
}

TEST(InstalledFile, LiesBesideTheProgramOrInAFolderBesideThat) {
  EXPECT_EQ(InstalledFile("lib", "base_test"), ThisProgram());
  const std::filesystem::path directory = std::filesystem::path(ThisProgram()).parent_path();
  EXPECT_EQ(InstalledFile("lib", "no such file"), std::nullopt);
  EXPECT_EQ(WhyNotInstalled("lib", "x"), "neither " + (directory / "x").string() + " nor " +
                                             (directory.parent_path() / "lib/x").string() +
                                             " exists");
}

}  // namespace
}  // namespace renzan
