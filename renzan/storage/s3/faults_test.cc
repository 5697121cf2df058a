// Fails one request after the other, in every way: the store must never hold a part of a tree that
// looks like the whole.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/storage/s3/fake_store_for_test.h"
#include "renzan/storage/s3/s3_storage.h"
#include "renzan/storage/s3/upload.h"

namespace renzan::s3 {
namespace {

constexpr char kManifest[] = "manifest";
const std::string kLarge(Upload::kPartBytes + 1, 't');
const std::string kDir = "s3://bucket/run/checkpoints";

using Tree = std::map<std::string, std::string_view>;  // content by name

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

struct NamedFault {
  const char* name;
  Fault fault;
  bool transient;
};
const std::vector<NamedFault> kFaults = {
    {"cut before", Fault::CutBefore(), true},
    {"cut after", Fault::CutAfter(), true},
    {"cut in the answer's head", Fault::CutInHead(), true},
    {"cut in the answer's body", Fault::CutInBody(), true},
    {"500", Fault::InternalError(), true},
    {"500 although done", Fault::AnswerAfter(500, "InternalError"), true},
    {"503", Fault::SlowDown(), true},
    {"429", Fault::TooManyRequests(), true},
    {"clock", Fault::TimeTooSkewed(), false},
    {"expired", Fault::ExpiredToken(), false},
    {"denied", Fault::AccessDenied(), false},
};

class S3Faults : public testing::Test {
 protected:
  S3Faults() { SetLogLevel(LogLevel::kError); }  // thousands of warnings
  ~S3Faults() override { SetLogLevel(LogLevel::kInfo); }

  std::unique_ptr<Storage> Open(FakeStore& store, double retry_seconds) {
    return OpenS3(store.environment(), SystemClock(),
                  {.client = {.retry_seconds = retry_seconds,
                              .wait = [](double, const std::stop_token&) {}}});
  }

  // What the trees contain. If `large_`, which takes a while, one file has several parts.
  std::map<std::string, Tree> Trees() const {
    return {{"step-1",
             {{"dense", "first"},
              {"table", large_ ? std::string_view(kLarge) : "small"},
              {"zero", ""}}},
            {"step-2", {{"dense", "second"}, {"table", "small"}}}};
  }

  void WriteTree(Storage& storage, const std::string& name) const {
    const std::unique_ptr<StagedTree> tree = storage.Stage(kDir + "/" + name, kManifest);
    std::string manifest;
    const Tree contents = Trees().at(name);
    for (const auto& [file_name, content] : contents) {
      const std::unique_ptr<OutputFile> file = storage.Create(tree->location() + file_name);
      file->Write(content);
      file->Close();
      manifest += file->path().substr(file->path().rfind('/') + 1) + "\n";
    }
    tree->Commit(kManifest, manifest);
  }

  // What a run does. False if it fails.
  bool Run(Storage& storage) const {
    try {
      WriteTree(storage, "step-1");
      WriteTree(storage, "step-2");
      storage.RemoveTree(kDir + "/step-1", kManifest);
    } catch (const Error& error) {
      return false;
    }
    return true;
  }

  static void RemoveLeftovers(Storage& storage) {
    const auto files_of = [&](const std::string& tree) {
      return Lines(storage.ReadText(tree + "/" + kManifest));
    };
    for (const std::string& path : storage.Leftovers(kDir, "step-", kManifest, files_of))
      storage.Remove(path);
  }

  static bool HasTree(FakeStore& store, const std::string& name) {
    return store.Content(KeyOf(name, kManifest)).has_value();
  }
  static std::string KeyOf(const std::string& tree, const std::string& file) {
    return "run/checkpoints/" + tree + "/" + file;
  }

  // The number of trees with a manifest, each checked to be complete. Reads the store's memory
  // directly.
  size_t CheckThatTreesAreComplete(FakeStore& store) const {
    size_t keys = 0;
    for (const auto& [name, tree] : Trees()) {
      const std::optional<std::string> manifest = store.Content(KeyOf(name, kManifest));
      if (!manifest) continue;
      const std::vector<std::string> files = Lines(*manifest);
      EXPECT_EQ(files.size(), tree.size());
      for (const std::string& file : files)
        EXPECT_TRUE(store.Holds(KeyOf(name, file), tree.at(file.substr(file.rfind('.') + 1))))
            << name << "/" << file;
      keys += 1 + tree.size();
    }
    return keys;
  }

  void CheckThatNothingElseIsThere(FakeStore& store) const {
    EXPECT_EQ(store.keys().size(), CheckThatTreesAreComplete(store))
        << testing::PrintToString(store.keys());
    EXPECT_EQ(store.unfinished_uploads(), 0u);
  }

  // What the next run does first.
  void Recover(FakeStore& store) {
    CheckThatTreesAreComplete(store);
    store.Heal();
    const std::unique_ptr<Storage> storage = Open(store, 120);
    RemoveLeftovers(*storage);
    CheckThatNothingElseIsThere(store);
    // The run can continue from there.
    if (!HasTree(store, "step-2")) {
      WriteTree(*storage, "step-2");
      CheckThatNothingElseIsThere(store);
    }
  }

  // Calls `test` for each request of a run and each fault. Only the part of the run that writes the
  // large file is done with `large_`; the whole run is done without.
  template <typename Test>
  void ForEachRequest(const Test& test) {
    for (const bool large : {true, false}) {
      large_ = large;
      FakeStore healthy;
      const std::unique_ptr<Storage> storage = Open(healthy, 0);
      if (large)
        WriteTree(*storage, "step-1");
      else
        EXPECT_TRUE(Run(*storage));
      const int requests = static_cast<int>(healthy.requests().size());
      EXPECT_EQ(requests, large ? 7 : 13);
      for (const NamedFault& fault : kFaults)
        for (int n = 0; n < requests; ++n) {
          SCOPED_TRACE(fmt::format("{}: request {} of {}", fault.name, n, requests));
          test(fault, n);
          if (HasFailure()) return;
        }
    }
  }

  bool large_ = false;
};

TEST_F(S3Faults, OneRequestFailsForGood) {
  ForEachRequest([&](const NamedFault& fault, int n) {
    FakeStore store;
    store.SetPlan([&](int index, const std::string&, const std::string&) {
      return index == n ? fault.fault : Fault::None();
    });
    EXPECT_FALSE(Run(*Open(store, /*retry_seconds=*/0)));
    Recover(store);
  });
}

// The process is killed, or the network is gone.
TEST_F(S3Faults, AllRequestsFailFromOneOn) {
  ForEachRequest([&](const NamedFault& fault, int n) {
    FakeStore store;
    store.SetPlan([&](int index, const std::string&, const std::string&) {
      return index == n ? fault.fault : index > n ? Fault::CutBefore() : Fault::None();
    });
    EXPECT_FALSE(Run(*Open(store, /*retry_seconds=*/0)));
    Recover(store);
  });
}

TEST_F(S3Faults, RetriesSucceed) {
  ForEachRequest([&](const NamedFault& fault, int n) {
    if (!fault.transient) return;
    FakeStore store;
    store.SetPlan([&](int index, const std::string&, const std::string&) {
      return index == n ? fault.fault : Fault::None();
    });
    EXPECT_TRUE(Run(*Open(store, /*retry_seconds=*/120)));
    EXPECT_FALSE(HasTree(store, "step-1"));
    EXPECT_TRUE(HasTree(store, "step-2"));
    EXPECT_EQ(store.keys().size(), CheckThatTreesAreComplete(store));
    Recover(store);
  });
}

// Every request fails once or twice before it succeeds.
TEST_F(S3Faults, AStoreThatIsNeverWell) {
  for (const NamedFault& fault : kFaults) {
    if (!fault.transient) continue;
    SCOPED_TRACE(fault.name);
    large_ = true;
    FakeStore store;
    store.SetPlan([&](int index, const std::string&, const std::string&) {
      return index % 3 != 2 ? fault.fault : Fault::None();
    });
    EXPECT_TRUE(Run(*Open(store, /*retry_seconds=*/120)));
    Recover(store);
    EXPECT_TRUE(HasTree(store, "step-2"));
  }
}

// Recovery from a killed run is killed as well, and so on.
TEST_F(S3Faults, RecoveryItselfFails) {
  for (const NamedFault& fault : kFaults) {
    int n = 0;
    for (bool succeeded = false; !succeeded; ++n) {
      SCOPED_TRACE(fmt::format("{}: request {}", fault.name, n));
      FakeStore store;
      WriteTree(*Open(store, 0), "step-2");
      store.Put(KeyOf("step-2", "0123456789abcdef.stray"), "another");
      for (const std::string name :
           {"aaaaaaaaaaaaaaaa.dense", "aaaaaaaaaaaaaaaa.table", "bbbbbbbbbbbbbbbb.dense"})
        store.Put(KeyOf("step-1", name), "a part");
      Client client(ReadSettings(store.environment()), store.environment(), SystemClock(), {});
      client.BeginUpload({FakeStore::kBucket, KeyOf("step-1", "bbbbbbbbbbbbbbbb.table")});
      client.BeginUpload({FakeStore::kBucket, KeyOf("step-3", "cccccccccccccccc.table")});

      store.SetPlan([&](int index, const std::string&, const std::string&) {
        return index == n ? fault.fault : index > n ? Fault::CutBefore() : Fault::None();
      });
      try {
        RemoveLeftovers(*Open(store, /*retry_seconds=*/0));
        succeeded = true;
      } catch (const Error&) {
      }
      Recover(store);
      EXPECT_TRUE(HasTree(store, "step-2"));
      EXPECT_FALSE(HasTree(store, "step-1"));
      if (HasFailure()) return;
    }
    EXPECT_GT(n, 10);
  }
}

}  // namespace
}  // namespace renzan::s3
