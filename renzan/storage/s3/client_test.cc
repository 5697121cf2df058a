#include "renzan/storage/s3/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "renzan/storage/s3/client_for_test.h"

namespace renzan::s3 {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

class S3Client : public ClientTest {};

TEST_F(S3Client, WhatIsPutCanBeRead) {
  EXPECT_EQ(client_->Get(At("a")), std::nullopt);
  EXPECT_EQ(client_->Head(At("a")), std::nullopt);
  const std::optional<std::string> etag = client_->Put(At("a"), "content");
  ASSERT_TRUE(etag);
  const std::optional<Client::Content> content = client_->Get(At("a"));
  ASSERT_TRUE(content);
  EXPECT_EQ(content->text, "content");
  EXPECT_EQ(content->etag, *etag);
  const std::optional<Object> object = client_->Head(At("a"));
  ASSERT_TRUE(object);
  EXPECT_EQ(object->bytes, 7u);
  EXPECT_EQ(object->etag, *etag);
  std::string part(3, ' ');
  client_->GetRange(At("a"), *etag, 2, BytesOf(part));
  EXPECT_EQ(part, "nte");
  client_->Delete(At("a"));
  client_->Delete(At("a"));
  EXPECT_EQ(client_->Get(At("a")), std::nullopt);
  EXPECT_TRUE(waits_.empty());
}

TEST_F(S3Client, AnEmptyObject) {
  ASSERT_TRUE(client_->Put(At("empty"), ""));
  EXPECT_EQ(client_->Get(At("empty"))->text, "");
  EXPECT_EQ(client_->Head(At("empty"))->bytes, 0u);
}

TEST_F(S3Client, AnObjectThatLooksLikeAnError) {
  const std::string text = "<Error><Code>InternalError</Code></Error>";
  client_->Put(At("a"), text);
  EXPECT_EQ(client_->Get(At("a"))->text, text);
}

TEST_F(S3Client, ConditionsHold) {
  const std::optional<std::string> first = client_->Put(At("a"), "1", Condition::Absent());
  ASSERT_TRUE(first);
  EXPECT_EQ(client_->Put(At("a"), "2", Condition::Absent()), std::nullopt);
  EXPECT_EQ(Content("a"), "1");
  const std::optional<std::string> second = client_->Put(At("a"), "2", Condition::Matches(*first));
  ASSERT_TRUE(second);
  EXPECT_EQ(client_->Put(At("a"), "3", Condition::Matches(*first)), std::nullopt);
  EXPECT_EQ(Content("a"), "2");
  EXPECT_EQ(client_->Put(At("none"), "3", Condition::Matches(*second)), std::nullopt);
  EXPECT_EQ(Content("none"), std::nullopt);
}

TEST_F(S3Client, ItIsSignedWithTheSessionToken) {
  client_->Get(At("a"));
  const FakeRequest request = store_.requests().at(0);
  EXPECT_EQ(request.Header("x-amz-security-token"), FakeStore::kSessionToken);
  EXPECT_THAT(request.Header("authorization"),
              AllOf(HasSubstr("x-amz-security-token"), Not(HasSubstr(FakeStore::kSecretKey))));
}

const std::vector<std::string> kOddKeys = {"a b",       "a+b",      "a%20b",  "100%",
                                           "what?x=1",  "a#b",      "a&b=c",  "\u00fc/\u65e5\u672c",
                                           "a'b\"c<d>", "(a;b:c)@", "d,e$f",  "!g*h[i]{j}|k^l`m",
                                           "~a\\b",     "a//b",     "a/../b", "a/./b",
                                           "dir/",      "%2F",      "+",      "&amp;"};

TEST_F(S3Client, OddKeys) {
  for (const std::string& key : kOddKeys) {
    SCOPED_TRACE(key);
    ASSERT_TRUE(client_->Put(At(key), "content of " + key));
    EXPECT_EQ(Content(key), "content of " + key);
    EXPECT_EQ(client_->Get(At(key))->text, "content of " + key);
    const Client::Listing listing = client_->List(FakeStore::kBucket, key, false);
    ASSERT_FALSE(listing.objects.empty());
    EXPECT_EQ(listing.objects[0].key, key);
    EXPECT_TRUE(client_->HasAny(FakeStore::kBucket, key));
  }
  EXPECT_THAT(store_.keys(), UnorderedElementsAreArray(kOddKeys));
  std::vector<std::string> keys;
  for (const Object& object : client_->List(FakeStore::kBucket, "", false).objects)
    keys.push_back(object.key);
  EXPECT_THAT(keys, UnorderedElementsAreArray(kOddKeys));
  for (const std::string& key : kOddKeys) client_->Delete(At(key));
  EXPECT_TRUE(store_.keys().empty());
}

TEST_F(S3Client, UploadsOfOddKeysAreListed) {
  std::vector<std::string> ids, keys, listed_ids;
  for (const std::string& key : kOddKeys) ids.push_back(client_->BeginUpload(At(key)));
  ids.push_back(client_->BeginUpload(At("a b")));  // a second upload to the same key
  for (const auto& [location, id] : client_->Uploads(FakeStore::kBucket, "")) {
    keys.push_back(location.key);
    listed_ids.push_back(id);
  }
  EXPECT_THAT(listed_ids, UnorderedElementsAreArray(ids));
  EXPECT_EQ(std::count(keys.begin(), keys.end(), "a b"), 2);
  for (const std::string& key : kOddKeys) EXPECT_THAT(keys, Contains(key));
  EXPECT_EQ(client_->Uploads(FakeStore::kBucket, "a%").size(), 1u);
  for (const auto& [location, id] : client_->Uploads(FakeStore::kBucket, ""))
    client_->AbortUpload(location, id);
  EXPECT_EQ(store_.unfinished_uploads(), 0u);
}

TEST_F(S3Client, ListsHavePages) {
  std::vector<std::string> keys;
  for (int i = 0; i < 10; ++i) {
    keys.push_back(fmt::format("d/{}/x", i));
    keys.push_back(fmt::format("d/{}/y", i));
    store_.Put(keys[keys.size() - 2], "12");
    store_.Put(keys[keys.size() - 1], "123");
  }
  store_.Put("d/5z", "");
  keys.push_back("d/5z");
  store_.Put("e", "");
  const Client::Listing all = client_->List(FakeStore::kBucket, "d/", false);
  std::vector<std::string> listed;
  uint64_t bytes = 0;
  for (const Object& object : all.objects) {
    listed.push_back(object.key);
    bytes += object.bytes;
  }
  EXPECT_THAT(listed, UnorderedElementsAreArray(keys));
  EXPECT_EQ(bytes, 50u);
  EXPECT_TRUE(all.prefixes.empty());
  EXPECT_EQ(store_.requests().size(), 7u);

  const Client::Listing directory = client_->List(FakeStore::kBucket, "d/", true);
  EXPECT_THAT(directory.prefixes, ElementsAre("d/0/", "d/1/", "d/2/", "d/3/", "d/4/", "d/5/",
                                              "d/6/", "d/7/", "d/8/", "d/9/"));
  ASSERT_EQ(directory.objects.size(), 1u);
  EXPECT_EQ(directory.objects[0].key, "d/5z");
  EXPECT_TRUE(client_->List(FakeStore::kBucket, "none/", false).objects.empty());
  EXPECT_TRUE(client_->HasAny(FakeStore::kBucket, "d/"));
  EXPECT_FALSE(client_->HasAny(FakeStore::kBucket, "none/"));
}

TEST_F(S3Client, AnAnswerThatIsNoList) {
  for (const std::string body : {"<html><body>Welcome</body></html>", "{\"json\": true}", "",
                                 "<ListBucketResult><Contents>"}) {
    SCOPED_TRACE(body);
    const std::vector<std::function<void()>> requests = {
        [&] { client_->List(FakeStore::kBucket, "", false); },
        [&] { client_->Uploads(FakeStore::kBucket, ""); }, [&] { client_->BeginUpload(At("a")); }};
    for (const auto& request : requests) {
      store_.FailNext(Fault::Answer(200, "", body.empty() ? " " : body));
      const Error error = FailureOf(request);
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("S3-compatible store"), HasSubstr(store_.url()),
                                      HasSubstr("s3://bucket")));
    }
  }
}

TEST_F(S3Client, AListThatContradictsItself) {
  const auto list = [&] { client_->List(FakeStore::kBucket, "", false); };
  store_.FailNext(Fault::Answer(200, "",
                                "<ListBucketResult><Contents><Key>a</Key><Size>1x</Size>"
                                "</Contents></ListBucketResult>"));
  EXPECT_THAT(FailureOf(list).what(), HasSubstr("'1x' as the size of 'a'"));
  store_.FailNext(Fault::Answer(
      200, "", "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"));
  EXPECT_THAT(FailureOf(list).what(), HasSubstr("no continuation token"));
}

// Some stores list more than was asked for, and leave out where the next page starts.
TEST_F(S3Client, AListOfTooManyUploads) {
  client_->BeginUpload(At("a/2"));
  store_.FailNext(Fault::Answer(200, "",
                                "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>"
                                "<Upload><Key>b/1</Key><UploadId>1</UploadId></Upload>"
                                "<Upload><Key>a/1</Key><UploadId>2</UploadId></Upload>"
                                "</ListMultipartUploadsResult>"));
  std::vector<std::string> keys;
  for (const auto& [location, id] : client_->Uploads(FakeStore::kBucket, "a/"))
    keys.push_back(location.key);
  EXPECT_THAT(keys, ElementsAre("a/1", "a/2"));
}

TEST_F(S3Client, ARangeOfAnObjectThatHasChanged) {
  const std::string etag = *client_->Put(At("a"), "0123456789");
  std::string out(4, ' ');
  store_.Put("a", "9876543210");
  const Error error = FailureOf([&] { client_->GetRange(At("a"), etag, 0, BytesOf(out)); });
  EXPECT_EQ(error.code(), ErrorCode::kData);
  EXPECT_THAT(error.what(), HasSubstr("s3://bucket/a was replaced while it was read"));
  EXPECT_EQ(out, "    ");
  client_->GetRange(At("a"), "", 0, BytesOf(out));
  EXPECT_EQ(out, "9876");
}

TEST_F(S3Client, ARangeBeyondTheEnd) {
  client_->Put(At("a"), "0123456789");
  std::string out(4, ' ');
  client_->GetRange(At("a"), "", 6, BytesOf(out));
  EXPECT_EQ(out, "6789");
  for (const uint64_t offset : {7, 10, 1000}) {
    const Error error = FailureOf([&] { client_->GetRange(At("a"), "", offset, BytesOf(out)); });
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_THAT(error.what(),
                HasSubstr(fmt::format("s3://bucket/a ends before byte {}", offset + 4)));
  }
  const Error error = FailureOf([&] { client_->GetRange(At("none"), "", 0, BytesOf(out)); });
  EXPECT_EQ(error.code(), ErrorCode::kNoInput);
  EXPECT_TRUE(error.is_missing_file());
  EXPECT_TRUE(waits_.empty()) << "none of these goes away";
}

TEST_F(S3Client, AShortAnswerAboutAWholeObjectIsAskedForAgain) {
  const std::string etag = *client_->Put(At("a"), "0123456789");
  for (const Fault& fault : {Fault::Answer(416, "InvalidRange"), Fault::Answer(206, "", "23")}) {
    std::string out(4, ' ');
    waits_.clear();
    store_.FailNext(fault);
    client_->GetRange(At("a"), etag, 2, BytesOf(out));
    EXPECT_EQ(out, "2345");
    EXPECT_EQ(waits_.size(), 1u);
  }
}

TEST_F(S3Client, ARedirectIsNotFollowed) {
  store_.FailNext(Fault::Answer(307, "TemporaryRedirect"));
  EXPECT_EQ(FailureOf([&] { client_->Get(At("a")); }).code(), ErrorCode::kConfig);
  EXPECT_EQ(store_.requests().size(), 1u);
}

TEST_F(S3Client, AnotherBucketDoesNotExist) {
  const Location location{.bucket = "none", .key = "a"};
  std::string out(1, ' ');
  const std::vector<std::function<void()>> requests = {
      [&] { client_->Get(location); },
      [&] { client_->GetRange(location, "", 0, BytesOf(out)); },
      [&] { client_->Put(location, "1"); },
      [&] { client_->Put(location, "1", Condition::Absent()); },
      [&] { client_->Put(location, "1", Condition::Matches("\"x\"")); },
      [&] { client_->Delete(location); },
      [&] { client_->List("none", "", false); },
      [&] { client_->HasAny("none", ""); },
      [&] { client_->BeginUpload(location); },
      [&] { client_->Uploads("none", ""); }};
  for (const auto& request : requests) {
    const Error error = FailureOf(request);
    EXPECT_EQ(error.code(), ErrorCode::kNoInput);
    EXPECT_FALSE(error.is_missing_file());
    EXPECT_THAT(error.what(), HasSubstr("create the bucket 'none'"));
  }
  EXPECT_TRUE(waits_.empty());
}

}  // namespace
}  // namespace renzan::s3
