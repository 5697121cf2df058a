// What every Storage must do, on this machine's files and in a store.

#include "renzan/storage/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/storage/posix_storage.h"
#include "renzan/storage/s3/failure_for_test.h"
#include "renzan/storage/s3/fake_store_for_test.h"
#include "renzan/storage/s3/s3_storage.h"
#include "renzan/storage/s3/upload.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;

using s3::FailureOf;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kManifest[] = "manifest";

enum class Kind { kPosix, kS3 };

class StorageTest : public testing::TestWithParam<Kind> {
 protected:
  StorageTest() {
    if (GetParam() == Kind::kPosix) {
      storage_ = std::make_unique<PosixStorage>();
      dir_ = scratch_ / "dir";
      CreateDirectories(dir_);
      CreateDirectories(dir_ + "/sub");
    } else {
      CreateDirectories(scratch_ / "copies");
      storage_ =
          s3::OpenS3(store_.environment(), SystemClock(),
                     {.lease = {.renew_seconds = 0.1, .expire_seconds = 1, .poll_seconds = 0.02},
                      .copies = scratch_ / "copies"});
      dir_ = "s3://bucket/some/dir";
    }
  }

  bool in_store() const { return GetParam() == Kind::kS3; }
  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) {
    storage_->WriteText(Path(name), text);
  }
  // The files in the directory ("sub/x"), without lock files.
  std::vector<std::string> FileNames() {
    std::vector<std::string> names;
    for (const Storage::File& file : storage_->Files(dir_)) {
      EXPECT_THAT(file.path, StartsWith(dir_ + "/"));
      names.push_back(file.path.substr(dir_.size() + 1));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  // Writes a file into a tree and returns its name there.
  std::string WriteInto(StagedTree& tree, const std::string& name, const std::string& content) {
    const std::unique_ptr<OutputFile> file = storage_->Create(tree.location() + name);
    file->Write(content);
    file->Close();
    return file->path().substr(file->path().rfind('/') + 1);
  }
  // A tree of one file; its manifest is the file's name.
  std::string WriteTree(const std::string& name, const std::string& content) {
    const std::unique_ptr<StagedTree> tree = storage_->Stage(Path(name), kManifest);
    const std::string file = WriteInto(*tree, "data", content);
    tree->Commit(kManifest, file);
    return file;
  }
  std::optional<std::string> ContentOfTree(const std::string& name) {
    if (!storage_->HasTree(Path(name), kManifest)) return std::nullopt;
    const std::string file = storage_->ReadText(Path(name) + "/" + kManifest);
    return storage_->ReadText(Path(name) + "/" + file);
  }
  std::vector<std::string> Leftovers() {
    return storage_->Leftovers(dir_, "step-", kManifest,
                               [&](const std::string& tree) -> std::vector<std::string> {
                                 return {storage_->ReadText(tree + "/" + kManifest)};
                               });
  }

  void RemoveLeftovers() {
    for (const std::string& path : Leftovers()) storage_->Remove(path);
    EXPECT_THAT(Leftovers(), IsEmpty());
  }

  TemporaryDirectory scratch_;
  s3::FakeStore store_;
  std::unique_ptr<Storage> storage_;
  std::string dir_;
};
INSTANTIATE_TEST_SUITE_P(, StorageTest, testing::Values(Kind::kPosix, Kind::kS3),
                         [](const auto& tested) {
                           return tested.param == Kind::kPosix ? "Posix" : "S3";
                         });

TEST_P(StorageTest, NamesAndFiles) {
  for (const std::string name : {"b", "a", "sub/x", "sub/y"}) Write(name, name);
  EXPECT_THAT(storage_->Names(dir_), ElementsAre("a", "b", "sub"));
  EXPECT_THAT(storage_->Names(Path("sub")), ElementsAre("x", "y"));
  EXPECT_THAT(storage_->Names(Path("none")), IsEmpty());
  EXPECT_THAT(FileNames(), ElementsAre("a", "b", "sub/x", "sub/y"));
  for (const Storage::File& file : storage_->Files(dir_))
    EXPECT_EQ(file.bytes, storage_->ReadText(file.path).size());
  EXPECT_THAT(storage_->Files(Path("none")), IsEmpty());
}

TEST_P(StorageTest, OddNames) {
  const std::vector<std::string> names = {"%41", "a b", "a+b", "a=b&c#d?e", "\u00e4"};
  for (const std::string& name : names) Write(name, name);
  EXPECT_EQ(FileNames(), names);
  for (const std::string& name : names) {
    EXPECT_EQ(storage_->ReadText(Path(name)), name);
    EXPECT_FALSE(storage_->IsMissing(Path(name)));
    storage_->Remove(Path(name));
  }
  EXPECT_THAT(FileNames(), IsEmpty());
}

TEST_P(StorageTest, Sizes) {
  Write("one", "1");
  Write("three", "333");
  const std::vector<std::string> names = {"three", "one", "three"};
  EXPECT_THAT(storage_->Sizes(dir_, names), ElementsAre(3, 1, 3));
  const std::vector<std::string> missing = {"one", "thre"};
  const Error error = FailureOf([&] { storage_->Sizes(dir_, missing); });
  EXPECT_EQ(error.code(), ErrorCode::kNoInput);
  EXPECT_TRUE(error.is_missing_file());
  EXPECT_THAT(error.what(), HasSubstr(Path("thre")));
}

TEST_P(StorageTest, IsMissing) {
  Write("sub/file", "");
  EXPECT_FALSE(storage_->IsMissing(Path("sub/file")));
  EXPECT_FALSE(storage_->IsMissing(Path("sub"))) << "a directory";
  EXPECT_FALSE(storage_->IsMissing(dir_));
  EXPECT_TRUE(storage_->IsMissing(Path("sub/fil")));
  EXPECT_TRUE(storage_->IsMissing(Path("su")));
  EXPECT_TRUE(storage_->IsMissing(Path("none/file")));
}

TEST_P(StorageTest, ReadText) {
  Write("file", "0123456789");
  EXPECT_EQ(storage_->ReadText(Path("file")), "0123456789");
  EXPECT_EQ(storage_->ReadText(Path("file"), 10), "0123456789");
  EXPECT_EQ(FailureOf([&] { storage_->ReadText(Path("file"), 9); }).code(), ErrorCode::kData);
  const Error error = FailureOf([&] { storage_->ReadText(Path("none")); });
  EXPECT_EQ(error.code(), ErrorCode::kNoInput);
  EXPECT_TRUE(error.is_missing_file());
  EXPECT_THAT(error.what(), HasSubstr(Path("none")));
}

TEST_P(StorageTest, ReadRange) {
  Write("file", "0123456789");
  std::string out(4, ' ');
  const auto read = [&](const std::string& name, uint64_t offset) {
    storage_->ReadRange(Path(name), offset, std::as_writable_bytes(std::span(out)));
    return out;
  };
  EXPECT_EQ(read("file", 0), "0123");
  EXPECT_EQ(read("file", 6), "6789");
  for (const uint64_t offset : {7, 10, 100}) {
    const Error error = FailureOf([&] { read("file", offset); });
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_THAT(error.what(), HasSubstr(Path("file")));
  }
  const Error error = FailureOf([&] { read("none", 0); });
  EXPECT_EQ(error.code(), ErrorCode::kNoInput);
  EXPECT_TRUE(error.is_missing_file());
}

TEST_P(StorageTest, FetchGivesTheBytesAndCleansUp) {
  Write("file", "content");
  std::string copy;
  {
    LocalFile fetched = storage_->Fetch(Path("file"));
    const LocalFile moved(std::move(fetched));
    EXPECT_EQ(moved.path(), Path("file"));
    EXPECT_EQ(ReadFile(moved.local_path()), "content");
    EXPECT_EQ(ReadFile(moved.local_path()), "content") << "not only once";
    EXPECT_EQ(FileSize(moved.local_path()), 7u);
    if (in_store()) {
      copy = moved.local_path();
      EXPECT_THAT(fs::read_symlink(copy).string(), HasSubstr("/copies/"));
      EXPECT_TRUE(fs::is_empty(scratch_ / "copies")) << "it has no name";
    }
  }
  std::error_code gone;
  EXPECT_THAT(fs::read_symlink(copy, gone).string(), Not(HasSubstr("/copies/"))) << "closed";
  EXPECT_EQ(storage_->ReadText(Path("file")), "content");
  Write("file", "");
  EXPECT_EQ(ReadFile(storage_->Fetch(Path("file")).local_path()), "");
  const Error error = FailureOf([&] { ReadFile(storage_->Fetch(Path("none")).local_path()); });
  EXPECT_EQ(error.code(), ErrorCode::kNoInput);
  EXPECT_TRUE(error.is_missing_file());
  EXPECT_THAT(error.what(), HasSubstr(Path("none")));
}

// Content that differs from piece to piece.
std::string LargeContent(size_t bytes) {
  std::string content(bytes, ' ');
  for (size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>((i * 2654435761u) >> 23);
  return content;
}

TEST_P(StorageTest, LargeFiles) {
  const size_t part = s3::Upload::kPartBytes;
  std::vector<size_t> sizes = {0, 1, part - 1, part, part + 1, 2 * part + 12345};
  // More parts than are in flight at a time, so that buffers are reused.
  if (in_store()) sizes.push_back((s3::Upload::kPartsInFlight + 3) * part);
  for (const size_t bytes : sizes) {
    SCOPED_TRACE(bytes);
    store_.Heal();
    const std::string content = LargeContent(bytes);
    const std::unique_ptr<OutputFile> file = storage_->Create(Path("large"));
    // In pieces that do not align with parts.
    for (size_t i = 0; i < bytes; i += 3'000'000)
      file->Write(std::string_view(content).substr(i, 3'000'000));
    EXPECT_EQ(file->bytes_written(), bytes);
    EXPECT_EQ(file->path(), Path("large"));
    file->Close();
    EXPECT_EQ(file->bytes_written(), bytes);
    if (in_store()) {
      EXPECT_EQ(store_.CountOf("PUT"), std::max<size_t>(1, (bytes + part - 1) / part));
    }
    const std::vector<std::string> names = {"large"};
    EXPECT_THAT(storage_->Sizes(dir_, names), ElementsAre(bytes));
    EXPECT_TRUE(ReadFile(storage_->Fetch(Path("large")).local_path()) == content);
    if (!in_store()) continue;
    // A range that fails midway has been written in part.
    store_.SetPlan([](int index, const std::string& method, const std::string&) {
      return method == "GET" && index % 2 == 1 ? s3::Fault::CutInBody() : s3::Fault::None();
    });
    EXPECT_TRUE(ReadFile(storage_->Fetch(Path("large")).local_path()) == content);
  }
  EXPECT_EQ(store_.unfinished_uploads(), 0u);
}

TEST_P(StorageTest, AFileThatIsNotClosedIsNotThere) {
  for (const size_t bytes : {size_t{100}, s3::Upload::kPartBytes + 1}) {
    {
      const std::unique_ptr<OutputFile> file = storage_->Create(Path("file"));
      file->Write(std::string(bytes, 'x'));
    }
    EXPECT_TRUE(storage_->IsMissing(Path("file")));
    EXPECT_THAT(FileNames(), IsEmpty());
    EXPECT_EQ(store_.unfinished_uploads(), 0u);
  }
}

TEST_P(StorageTest, WriteTextReplaces) {
  Write("file", "a longer text");
  Write("file", "new");
  EXPECT_EQ(storage_->ReadText(Path("file")), "new");
  EXPECT_THAT(FileNames(), ElementsAre("file"));
}

TEST_P(StorageTest, WriteTextIfAbsent) {
  EXPECT_TRUE(storage_->WriteTextIfAbsent(Path("file"), "first"));
  EXPECT_FALSE(storage_->WriteTextIfAbsent(Path("file"), "second"));
  EXPECT_EQ(storage_->ReadText(Path("file")), "first");
  EXPECT_THAT(FileNames(), ElementsAre("file"));
}

TEST_P(StorageTest, OneOfManyThreadsWritesTheTextThatIsAbsent) {
  for (int round = 0; round < 20; ++round) {
    const std::string path = Path(std::to_string(round));
    std::atomic<int> winner{-1}, winners{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
          try {
            if (!storage_->WriteTextIfAbsent(path, fmt::format("text of {}", i))) return;
            winner = i;
            ++winners;
          } catch (const Error& error) {
            ADD_FAILURE() << error.what();
          }
        });
    }
    ASSERT_EQ(winners, 1);
    ASSERT_EQ(storage_->ReadText(path), fmt::format("text of {}", winner.load()));
  }
  EXPECT_EQ(FileNames().size(), 20u);
}

TEST_P(StorageTest, Remove) {
  for (const std::string name : {"a", "sub/x", "sub/y", "sub2"}) Write(name, name);
  for (int i = 0; i < 2; ++i) {
    storage_->Remove(Path("a"));
    storage_->Remove(Path("sub"));
    EXPECT_THAT(FileNames(), ElementsAre("sub2"));
  }
}

TEST_P(StorageTest, ATreeAppearsWhenItIsCommitted) {
  const std::unique_ptr<StagedTree> tree = storage_->Stage(Path("step-1"), kManifest);
  const std::string first = WriteInto(*tree, "first", "1"),
                    second = WriteInto(*tree, "second", LargeContent(s3::Upload::kPartBytes + 1));
  EXPECT_FALSE(storage_->HasTree(Path("step-1"), kManifest));
  tree->Commit(kManifest, "the manifest");
  EXPECT_TRUE(storage_->HasTree(Path("step-1"), kManifest));
  EXPECT_EQ(storage_->ReadText(Path("step-1/manifest")), "the manifest");
  EXPECT_EQ(storage_->ReadText(Path("step-1/") + first), "1");
  EXPECT_EQ(storage_->ReadText(Path("step-1/") + second).size(), s3::Upload::kPartBytes + 1);
  EXPECT_EQ(FileNames().size(), 3u);
}

TEST_P(StorageTest, ATreeThatIsNotCommittedLeavesNothing) {
  {
    const std::unique_ptr<StagedTree> tree = storage_->Stage(Path("step-1"), kManifest);
    WriteInto(*tree, "data", "1");
    WriteInto(*tree, "more", "2");
  }
  EXPECT_FALSE(storage_->HasTree(Path("step-1"), kManifest));
  if (in_store()) RemoveLeftovers();
  EXPECT_THAT(FileNames(), IsEmpty());
  EXPECT_TRUE(storage_->IsMissing(Path("step-1")));
  EXPECT_NO_THROW(WriteTree("step-1", "1")) << "another attempt";
  EXPECT_EQ(ContentOfTree("step-1"), "1");
}

TEST_P(StorageTest, ASecondTreeAtOnePath) {
  WriteTree("step-1", "first");
  EXPECT_EQ(FailureOf([&] { WriteTree("step-1", "second"); }).code(), ErrorCode::kCantCreate);
  RemoveLeftovers();
  EXPECT_EQ(ContentOfTree("step-1"), "first");
  EXPECT_EQ(FileNames().size(), 2u) << "nothing stays of the second";
}

TEST_P(StorageTest, ATreeThatAppearsBeforeTheCommit) {
  const std::unique_ptr<StagedTree> tree = storage_->Stage(Path("step-1"), kManifest);
  const std::string file = WriteInto(*tree, "data", "mine");
  if (!in_store()) CreateDirectories(Path("step-1"));
  Write("step-1/manifest", "theirs");
  EXPECT_EQ(FailureOf([&] { tree->Commit(kManifest, file); }).code(), ErrorCode::kCantCreate);
  EXPECT_EQ(storage_->ReadText(Path("step-1/manifest")), "theirs");
}

TEST_P(StorageTest, RemoveTree) {
  WriteTree("step-1", "1");
  WriteTree("step-10", "10");
  storage_->RemoveTree(Path("step-1"), kManifest);
  EXPECT_FALSE(storage_->HasTree(Path("step-1"), kManifest));
  EXPECT_TRUE(storage_->IsMissing(Path("step-1")));
  EXPECT_EQ(ContentOfTree("step-10"), "10");
  EXPECT_EQ(FileNames().size(), 2u);
}

TEST_P(StorageTest, SetAside) {
  for (int i = 1; i <= 3; ++i) {
    const std::string file = WriteTree("step-1", std::to_string(i));
    const std::string aside = storage_->SetAside(Path("step-1"), kManifest);
    EXPECT_THAT(aside, StartsWith(Path("step-1")));
    EXPECT_FALSE(storage_->IsMissing(aside));
    EXPECT_FALSE(storage_->HasTree(Path("step-1"), kManifest));
    EXPECT_EQ(FileNames().size(), 2u * static_cast<size_t>(i)) << "everything is kept";
    EXPECT_THAT(Leftovers(), IsEmpty());
    if (in_store()) {
      EXPECT_EQ(storage_->ReadText(aside), file);
    }
  }
}

TEST_P(StorageTest, RemovingATreeLeavesThoseOfItsNameThatWereSetAside) {
  WriteTree("step-1", "corrupt");
  storage_->SetAside(Path("step-1"), kManifest);
  const std::vector<std::string> aside = FileNames();
  WriteTree("step-1", "written again");
  storage_->RemoveTree(Path("step-1"), kManifest);
  EXPECT_FALSE(storage_->HasTree(Path("step-1"), kManifest));
  EXPECT_EQ(FileNames(), aside);
}

// A killed process runs no destructors: here they run afterwards.
TEST_P(StorageTest, LeftoversOfAKilledProcess) {
  WriteTree("step-1", "1");
  const std::unique_ptr<StagedTree> tree = storage_->Stage(Path("step-2"), kManifest);
  WriteInto(*tree, "data", "2");
  const std::unique_ptr<OutputFile> file = storage_->Create(tree->location() + "large");
  file->Write(LargeContent(s3::Upload::kPartBytes + 1));
  Write("other", "no tree");
  EXPECT_THAT(Leftovers(), Not(IsEmpty()));
  EXPECT_EQ(ContentOfTree("step-1"), "1");
  EXPECT_EQ(store_.unfinished_uploads(), 0u);
  RemoveLeftovers();
  EXPECT_EQ(FileNames().size(), 3u);
  EXPECT_EQ(ContentOfTree("step-1"), "1");
}

TEST_P(StorageTest, LockIsExclusive) {
  {
    const std::unique_ptr<DirectoryLock> lock = storage_->Lock(dir_, "the first run");
    lock->Check();
    const Error error = FailureOf([&] { storage_->Lock(dir_, "the second run"); });
    EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("the first run"), HasSubstr(dir_)));
    lock->Check();
    EXPECT_NO_THROW(storage_->Lock(Path("sub"), "another directory")->Check());
  }
  EXPECT_NO_THROW(storage_->Lock(dir_, "the third run")->Check());
}

TEST_P(StorageTest, LockCreatesTheDirectory) {
  const std::unique_ptr<DirectoryLock> lock = storage_->Lock(Path("new/dir"), "run");
  EXPECT_FALSE(storage_->IsMissing(Path("new/dir")));
}

TEST(StorageOf, Paths) {
  EXPECT_TRUE(IsInStore("s3://bucket"));
  EXPECT_FALSE(IsInStore("s3:/bucket"));
  EXPECT_FALSE(IsInStore("/s3://bucket"));
  EXPECT_EQ(NormalizedPath("s3://bucket//a///b//"), "s3://bucket/a/b");
  EXPECT_EQ(NormalizedPath("s3://bucket/"), "s3://bucket");
  EXPECT_EQ(NormalizedPath("/a//b/"), "/a//b/") << "a symbolic link may need its '/'";
}

TEST(StorageOf, AStoreIsOpenedWhenItIsNeededFirst) {
  EXPECT_EQ(FailureOf([] { Storage::Of("s3://bucket/a"); }).code(), ErrorCode::kConfig);
  int opened = 0;
  SetObjectStore([&] {
    ++opened;
    return std::make_unique<PosixStorage>();
  });
  Storage& files = Storage::Of("/tmp");
  EXPECT_EQ(opened, 0);
  Storage& store = Storage::Of("s3://bucket/a");
  EXPECT_NE(&store, &files);
  EXPECT_EQ(&Storage::Of("s3://another"), &store);
  EXPECT_EQ(opened, 1);
  SetObjectStore(nullptr);
}

}  // namespace
}  // namespace renzan
