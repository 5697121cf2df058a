#include "renzan/storage/s3/s3_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "renzan/base/clock.h"
#include "renzan/base/file/file.h"
#include "renzan/storage/s3/failure_for_test.h"
#include "renzan/storage/s3/fake_store_for_test.h"
#include "renzan/storage/s3/upload.h"

// What is specific to a store; the rest is in storage_test.cc.
namespace renzan::s3 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class S3StorageTest : public testing::Test {
 protected:
  static constexpr char kManifest[] = "manifest";

  std::unique_ptr<StagedTree> Stage() {
    return storage_->Stage("s3://bucket/dir/step-1", kManifest);
  }
  std::string WriteInto(const StagedTree& tree, const std::string& name) {
    storage_->WriteText(tree.location() + name, "content");
    return (tree.location() + name).substr(sizeof "s3://bucket/dir/step-1");
  }
  std::vector<std::string> Leftovers(const std::optional<std::vector<std::string>>& files) {
    return storage_->Leftovers("s3://bucket/dir", "step-", kManifest,
                               [&](const std::string&) { return files; });
  }

  TemporaryDirectory copies_;
  FakeStore store_;
  std::unique_ptr<Storage> storage_ =
      OpenS3(store_.environment(), SystemClock(), {.copies = copies_.path()});
};

TEST_F(S3StorageTest, OfTwoThatStageATreeOneCommits) {
  const std::unique_ptr<StagedTree> first = Stage(), second = Stage();
  const std::string of_first = WriteInto(*first, "data"), of_second = WriteInto(*second, "data");
  EXPECT_NE(of_first, of_second);
  first->Commit(kManifest, "of the first");
  const Error error = FailureOf([&] { second->Commit(kManifest, "of the second"); });
  EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
  EXPECT_THAT(error.what(), HasSubstr("s3://bucket/dir/step-1/manifest exists"));
  EXPECT_EQ(store_.Content("dir/step-1/manifest"), "of the first");
  EXPECT_THAT(Leftovers({{of_first}}), ElementsAre("s3://bucket/dir/step-1/" + of_second));
}

TEST_F(S3StorageTest, OfTreesThatCannotBeReadNothingIsLeftOver) {
  Stage()->Commit(kManifest, "");
  const std::string data = "0123456789abcdef.data";
  store_.Put("dir/step-1/" + data, "");
  store_.Put("dir/step-2/" + data, "");
  EXPECT_THAT(Leftovers(std::nullopt), ElementsAre("s3://bucket/dir/step-2/" + data));
  EXPECT_THAT(Leftovers({{data}}), ElementsAre("s3://bucket/dir/step-2/" + data));
}

TEST_F(S3StorageTest, OnlyWhatWasStagedIsLeftOver) {
  for (const std::string name : {"notes.txt", "0123456789ABCDEF.data", "0123456789abcdef"})
    store_.Put("dir/step-2/" + name, "");
  store_.Put("dir/step-2/0123456789abcdef.data/x", "");
  EXPECT_THAT(Leftovers({}), ElementsAre("s3://bucket/dir/step-2/0123456789abcdef.data/x"));
  storage_->RemoveStaged("s3://bucket/dir/step-2");
  EXPECT_THAT(Leftovers({}), ElementsAre());
  EXPECT_EQ(store_.keys().size(), 3u);
}

// Some programs mark directories with such objects. No key of ours looks like the others.
TEST_F(S3StorageTest, ObjectsOfOtherPrograms) {
  for (const std::string key : {"dir/sub/", "dir/sub/x", "dir/sub//y"}) store_.Put(key, "");
  EXPECT_THAT(storage_->Names("s3://bucket/dir/sub"), ElementsAre("x"));
  EXPECT_EQ(storage_->Files("s3://bucket/dir/sub/").size(), 2u);
  storage_->Remove("s3://bucket/dir/sub");
  EXPECT_THAT(store_.keys(), IsEmpty());
  EXPECT_TRUE(storage_->IsMissing("s3://bucket/dir/sub"));
}

TEST_F(S3StorageTest, FetchOfAFileThatIsReplacedMeanwhile) {
  store_.Put("file", "content");
  store_.SetPlan([](int index, const std::string&, const std::string&) {
    return index == 1 ? Fault::Answer(412, "PreconditionFailed") : Fault::None();
  });
  const Error error = FailureOf([&] { storage_->Fetch("s3://bucket/file"); });
  EXPECT_EQ(error.code(), ErrorCode::kData);
  EXPECT_THAT(error.what(), HasSubstr("s3://bucket/file was replaced"));
  EXPECT_THAT(store_.requests().at(1).Header("if-match"), Not(IsEmpty()));
  EXPECT_TRUE(std::filesystem::is_empty(copies_.path()));
}

TEST_F(S3StorageTest, FetchWithoutADirectoryForCopies) {
  store_.Put("file", "content");
  storage_ = OpenS3(store_.environment(), SystemClock(), {.copies = copies_ / "none"});
  EXPECT_THAT(FailureOf([&] { storage_->Fetch("s3://bucket/file"); }).what(),
              testing::AllOf(HasSubstr("s3://bucket/file"), HasSubstr(copies_ / "none"),
                             HasSubstr("TMPDIR")));
}

TEST_F(S3StorageTest, APartThatCannotBeWritten) {
  store_.SetPlan([](int, const std::string&, const std::string& target) {
    return target.find("partNumber=2") == std::string::npos ? Fault::None() : Fault::AccessDenied();
  });
  const auto write = [&](size_t parts) {
    const std::unique_ptr<OutputFile> file = storage_->Create("s3://bucket/a");
    for (size_t i = 0; i < parts; ++i) file->Write(std::string(Upload::kPartBytes, 'x'));
    file->Close();
  };
  for (const size_t parts : {2, 9}) {  // Close() fails, and perhaps Write() before
    const Error error = FailureOf([&] { write(parts); });
    EXPECT_EQ(error.code(), ErrorCode::kNoPermission);
    EXPECT_THAT(error.what(), HasSubstr("PUT s3://bucket/a"));
    EXPECT_THAT(store_.keys(), IsEmpty());
    EXPECT_EQ(store_.unfinished_uploads(), 0u);
  }
}

TEST_F(S3StorageTest, PathsThatNoStoreHas) {
  for (const std::string path :
       {"s3://", "s3:///a", "s3://ab/a", "s3://-ab/a", "s3://a_b-/a", "s3://a..b/a", "s3://a b/a",
        "s3://bucket/a/../b", "s3://bucket/./a", "s3://bucket/..", "s3://bucket/a\nb"}) {
    SCOPED_TRACE(path);
    EXPECT_EQ(FailureOf([&] { storage_->Names(path); }).code(), ErrorCode::kConfig);
    EXPECT_EQ(FailureOf([&] { storage_->WriteText(path, ""); }).code(), ErrorCode::kConfig);
  }
  const std::string dir = "s3://bucket/";
  EXPECT_EQ(FailureOf([&] { storage_->ReadText(dir + std::string(1025, 'k')); }).code(),
            ErrorCode::kConfig);
  EXPECT_EQ(FailureOf([&] { storage_->ReadText(dir + std::string(1024, 'k')); }).code(),
            ErrorCode::kNoInput);
  EXPECT_EQ(FailureOf([&] { storage_->Create(dir); }).code(), ErrorCode::kCantCreate);
}

TEST_F(S3StorageTest, TheWholeBucket) {
  EXPECT_TRUE(storage_->IsMissing("s3://bucket"));
  storage_->WriteText("s3://bucket/a/b", "");
  storage_->WriteText("s3://bucket//c/", "");
  EXPECT_FALSE(storage_->IsMissing("s3://bucket"));
  EXPECT_THAT(storage_->Names("s3://bucket"), ElementsAre("a", "c"));
  EXPECT_THAT(storage_->Names("s3://bucket/"), ElementsAre("a", "c"));
  EXPECT_EQ(storage_->Files("s3://bucket")[0].path, "s3://bucket/a/b");
}

}  // namespace
}  // namespace renzan::s3
