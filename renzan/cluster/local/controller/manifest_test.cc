#include "renzan/cluster/local/controller/manifest.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "renzan/base/file/file.h"

namespace renzan::cluster::local {
namespace {

using Json = nlohmann::json;

Json ManifestFor(const std::string& program, const std::string& path, uid_t uid) {
  spec::JobSpec spec;
  spec.command = {program};
  spec.working_directory = "/";
  spec.environment["PATH"] = path;
  return Json::parse(MakeManifest(spec, "/", {.uid = uid, .gid = uid, .name = "somebody"}));
}

class ManifestTest : public ::testing::Test {
 protected:
  ManifestTest() {
    WriteFileAtomically(directory_ / "program", "#!/bin/sh\n");
    ::chmod((directory_ / "program").c_str(), 0755);
  }
  TemporaryDirectory directory_;
};

TEST_F(ManifestTest, NamesTheProgramAndItsHash) {
  const Json manifest = ManifestFor("program", "/nowhere:" + directory_.path(), ::geteuid());
  EXPECT_EQ(manifest["program"], directory_ / "program");
  EXPECT_EQ(manifest["sha256"], "a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf");
  EXPECT_TRUE(ManifestFor("no-program", directory_.path(), ::geteuid())["program"].is_null());
}

TEST_F(ManifestTest, FindsTheProgramInTheSubmittersPathAndNamesItsVariables) {
  spec::JobSpec spec;
  spec.command = {"program"};
  const std::string text =
      MakeManifest(spec, "/", {.uid = ::geteuid(), .gid = ::getegid(), .name = "somebody"},
                   {{"PATH", directory_.path()}, {"TOKEN", "secret"}});
  EXPECT_EQ(Json::parse(text)["program"], directory_ / "program");
  EXPECT_EQ(Json::parse(text)["exported"], Json::array({"PATH", "TOKEN"}));
  EXPECT_EQ(text.find("secret"), std::string::npos);
}

TEST_F(ManifestTest, OnlyRegularFilesAreOpened) {
  const std::string pipe = directory_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0700), 0);
  EXPECT_TRUE(ManifestFor(pipe, "", ::geteuid())["sha256"].is_null());
  EXPECT_TRUE(ManifestFor("/dev/null", "", ::geteuid())["sha256"].is_null());
}

TEST_F(ManifestTest, RevealsNothingThatTheCallerCannotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to have more rights than others";
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0700), 0);
  const Json hidden = ManifestFor("program", directory_.path(), kNobody);
  EXPECT_TRUE(hidden["program"].is_null());
  EXPECT_TRUE(ManifestFor(directory_ / "program", "", kNobody)["sha256"].is_null());
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0711), 0);
  EXPECT_TRUE(ManifestFor("program", directory_.path(), kNobody)["sha256"].is_string());
  // Afterwards the thread has its own permissions again.
  ASSERT_EQ(::chmod((directory_ / "program").c_str(), 0700), 0);
  EXPECT_TRUE(ManifestFor("program", directory_.path(), 0)["sha256"].is_string());
}

}  // namespace
}  // namespace renzan::cluster::local
