#include "renzan/storage/s3/s3_storage.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/log.h"
#include "renzan/storage/s3/download.h"
#include "renzan/storage/s3/process_identity.h"
#include "renzan/storage/s3/upload.h"

namespace renzan::s3 {
namespace {

constexpr const char* kRetrySecondsVariable = "RENZAN_S3_RETRY_FOR";

[[noreturn]] void FailMissing(const std::string& path) { FailToRead(ENOENT, path); }

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Takes the place of the manifest of a tree whose objects are being removed: a process that still
// writes the tree, unaware that its lock was taken over, can then not publish it. Only the process
// named in it may replace it.
constexpr std::string_view kAbandoned = "{\"abandoned for\": \"";
constexpr uint64_t kAbandonedBytes = 64;  // at most

std::string AbandonedFor(const std::string& process) {
  return fmt::format("{}{}\"}}\n", kAbandoned, process);
}

// The destructor removes nothing: after an Error in Commit() the manifest may exist nevertheless,
// and then its files must too.
class TreeInStore : public StagedTree {
 public:
  TreeInStore(Client& client, std::string path, std::string process)
      : client_(client),
        path_(std::move(path)),
        location_(path_ + "/" + RandomName() + "."),
        process_(std::move(process)) {}
  const std::string& location() const override { return location_; }

  void Commit(const std::string& manifest_name, const std::string& manifest) override {
    const std::string path = path_ + "/" + manifest_name;
    const Location location = ParseLocation(path);
    if (client_.Put(location, manifest, Condition::Absent())) return;
    const std::optional<Client::Content> there = client_.Get(location);
    if (there && there->text == AbandonedFor(process_) &&
        client_.Put(location, manifest, Condition::Matches(there->etag)))
      return;
    Fail(ErrorCode::kCantCreate,
         "{} exists: another run has written it meanwhile; only one at a time may", path);
  }

 private:
  Client& client_;
  const std::string path_, location_, process_;
};

class S3Storage : public Storage {
 public:
  S3Storage(const Environment& environment, const Clock& clock, S3Options options)
      : clock_(clock),
        options_(std::move(options)),
        client_(ReadSettings(environment), environment, clock, options_.client) {
    if (options_.copies.empty()) options_.copies = environment("TMPDIR").value_or("/tmp");
  }

  std::vector<std::string> Names(const std::string& dir) override {
    const Location location = ParseLocation(dir);
    const Client::Listing listing = client_.List(location.bucket, location.Prefix(), true);
    std::vector<std::string> names;
    for (const Object& object : listing.objects) names.push_back(NameOf(object.key));
    for (const std::string& prefix : listing.prefixes)
      names.push_back(NameOf(prefix.substr(0, prefix.size() - 1)));
    std::erase(names, "");  // "dir/", with which some programs mark directories
    std::sort(names.begin(), names.end());
    return names;
  }

  std::vector<File> Files(const std::string& dir) override {
    const Location location = ParseLocation(dir);
    std::vector<File> files;
    for (const Object& object : client_.List(location.bucket, location.Prefix(), false).objects)
      if (!object.key.ends_with('/'))
        files.push_back({Location{location.bucket, object.key}.Path(), object.bytes});
    return files;
  }

  bool IsMissing(const std::string& path) override {
    const Location location = ParseLocation(path);
    if (!location.key.empty() && client_.Head(location)) return false;
    return !client_.HasAny(location.bucket, location.Prefix());
  }

  std::vector<uint64_t> Sizes(const std::string& dir, std::span<const std::string> names) override {
    std::map<std::string, uint64_t> known;
    for (const File& file : Files(dir)) known[file.path] = file.bytes;
    std::vector<uint64_t> sizes;
    for (const std::string& name : names) {
      const auto found = known.find(NormalizedPath(dir) + "/" + name);
      if (found == known.end()) FailMissing(dir + "/" + name);
      sizes.push_back(found->second);
    }
    return sizes;
  }

  std::string ReadText(const std::string& path, uint64_t max_bytes) override {
    std::optional<Client::Content> content = client_.Get(ParseLocation(path));
    if (!content) FailMissing(path);
    if (content->text.size() > max_bytes)
      Fail(ErrorCode::kData, "it has {} bytes", content->text.size());
    return std::move(content->text);
  }

  void ReadRange(const std::string& path, uint64_t offset, std::span<std::byte> out) override {
    client_.GetRange(ParseLocation(path), "", offset, out);
  }

  LocalFile Fetch(const std::string& path) override {
    const Location location = ParseLocation(path);
    const std::optional<Object> object = client_.Head(location);
    if (!object) FailMissing(path);
    std::string name = options_.copies + "/renzan-XXXXXX";
    const int fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0)
      FailErrno(errno,
                fmt::format("cannot keep a copy of {} in {} (set TMPDIR to another directory)",
                            path, options_.copies));
    LocalFile copy(path, fd);
    ::unlink(name.c_str());
    Download(client_, location, *object, fd, options_.copies);
    return copy;
  }

  std::unique_ptr<OutputFile> Create(const std::string& path) override {
    return std::make_unique<Upload>(client_, path);
  }

  void WriteText(const std::string& path, std::string_view text) override {
    client_.Put(ParseLocation(path), text);
  }

  bool WriteTextIfAbsent(const std::string& path, std::string_view text) override {
    return client_.Put(ParseLocation(path), text, Condition::Absent()).has_value();
  }

  void Remove(const std::string& path) override {
    const Location location = ParseLocation(path);
    // Not Files(), which leaves out the objects with which other programs mark directories.
    for (const Object& object : client_.List(location.bucket, location.Prefix(), false).objects)
      client_.Delete({location.bucket, object.key});
    if (!location.key.empty()) client_.Delete(location);
  }

  std::unique_ptr<StagedTree> Stage(const std::string& path, const std::string&) override {
    return std::make_unique<TreeInStore>(client_, NormalizedPath(path), process_);
  }

  bool HasTree(const std::string& path, const std::string& manifest_name) override {
    const Location manifest = ParseLocation(path + "/" + manifest_name);
    const std::optional<Object> object = client_.Head(manifest);
    return object && (object->bytes > kAbandonedBytes || !Abandoned(manifest));
  }

  // Without its manifest it is no longer a tree.
  void RemoveTree(const std::string& path, const std::string& manifest_name) override {
    const Location manifest = ParseLocation(path + "/" + manifest_name);
    const std::optional<Client::Content> content = client_.Get(manifest);
    client_.Delete(manifest);
    const Location tree = ParseLocation(path);
    std::vector<Object> objects = client_.List(tree.bucket, tree.Prefix(), false).objects;
    // A tree of the same name may have been set aside: its files stay.
    const std::string aside = manifest.key + std::string(kCorrupt);
    if (std::any_of(objects.begin(), objects.end(),
                    [&](const Object& object) { return object.key.starts_with(aside); }))
      std::erase_if(objects, [&](const Object& object) {
        return !content ||
               content->text.find(object.key.substr(tree.Prefix().size())) == std::string::npos;
      });
    for (const Object& object : objects) client_.Delete({tree.bucket, object.key});
  }

  std::string SetAside(const std::string& path, const std::string& manifest_name) override {
    const std::string manifest = NormalizedPath(path) + "/" + manifest_name;
    const std::optional<Client::Content> content = client_.Get(ParseLocation(manifest));
    if (!content) FailMissing(manifest);
    std::string to = manifest + std::string(kCorrupt);
    for (int i = 2; !client_.Put(ParseLocation(to), content->text, Condition::Absent()); ++i)
      to = fmt::format("{}{}-{}", manifest, kCorrupt, i);
    client_.Delete(ParseLocation(manifest));
    return to;
  }

  std::vector<std::string> Leftovers(const std::string& dir, const std::string& prefix,
                                     const std::string& manifest_name,
                                     const FilesOf& files_of) override {
    const Location location = ParseLocation(dir);
    const std::string start = location.Prefix() + prefix;
    for (const auto& [upload, id] : client_.Uploads(location.bucket, start))
      client_.AbortUpload(upload, id);
    std::map<std::string, std::vector<Object>> trees;
    for (const Object& object : client_.List(location.bucket, start, false).objects) {
      const size_t slash = object.key.find('/', start.size());
      if (slash != std::string::npos) trees[object.key.substr(0, slash)].push_back(object);
    }
    std::vector<std::string> leftovers;
    for (const auto& [key, objects] : trees)
      AddLeftovers({location.bucket, key}, objects, manifest_name, files_of, &leftovers);
    return leftovers;
  }

  void RemoveStaged(const std::string& path) override {
    const Location tree = ParseLocation(path);
    const auto is_staged = [&](const std::string& key) {
      return IsStagedName(std::string_view(key).substr(tree.Prefix().size()));
    };
    for (const auto& [upload, id] : client_.Uploads(tree.bucket, tree.Prefix()))
      if (is_staged(upload.key)) client_.AbortUpload(upload, id);
    for (const Object& object : client_.List(tree.bucket, tree.Prefix(), false).objects)
      if (is_staged(object.key)) client_.Delete({tree.bucket, object.key});
  }

  std::unique_ptr<DirectoryLock> Lock(const std::string& dir, const std::string& owner,
                                      const Patience& patience) override {
    ParseLocation(dir);
    auto lease =
        std::make_unique<Lease>(client_, LockOf(dir), owner, clock_, options_.lease, patience);
    if (lease->took_over()) former_owner_may_live_ = true;
    return lease;
  }
  std::string LockOwner(const std::string& dir) override {
    return Lease::OwnerOf(client_, LockOf(dir));
  }

 private:
  static Location LockOf(const std::string& dir) {
    return ParseLocation(NormalizedPath(dir) + "/.lock");
  }
  // The objects of one tree that no manifest names.
  void AddLeftovers(const Location& tree, const std::vector<Object>& objects,
                    const std::string& manifest_name, const FilesOf& files_of,
                    std::vector<std::string>* leftovers) {
    const Location manifest{tree.bucket, tree.Prefix() + manifest_name};
    bool has_manifest = false;
    for (const Object& object : objects) {
      if (object.key.starts_with(manifest.key + std::string(kCorrupt))) return;
      has_manifest = has_manifest || object.key == manifest.key;
    }
    std::optional<Client::Content> abandoned;
    if (has_manifest) abandoned = Abandoned(manifest);
    std::optional<std::vector<std::string>> wanted = std::vector<std::string>();
    if (has_manifest && !abandoned) {
      wanted = files_of(tree.Path());
    } else if (abandoned || former_owner_may_live_) {
      const Condition condition =
          abandoned ? Condition::Matches(abandoned->etag) : Condition::Absent();
      // If the mark cannot be written, the tree has been published after all.
      if (!client_.Put(manifest, AbandonedFor(process_), condition)) return;
    }
    if (!wanted) return;
    const std::set<std::string> keep(wanted->begin(), wanted->end());
    for (const Object& object : objects) {
      const std::string name = object.key.substr(tree.Prefix().size());
      if (IsStagedName(name) && !keep.contains(name))
        leftovers->push_back(Location{tree.bucket, object.key}.Path());
    }
  }

  // The manifest, if it is only the mark of an abandoned tree.
  std::optional<Client::Content> Abandoned(const Location& manifest) {
    const std::optional<Object> object = client_.Head(manifest);
    if (!object || object->bytes > kAbandonedBytes) return std::nullopt;
    std::optional<Client::Content> content = client_.Get(manifest);
    if (content && !content->text.starts_with(kAbandoned)) content.reset();
    return content;
  }

  static constexpr std::string_view kCorrupt = ".corrupt";

  const Clock& clock_;
  S3Options options_;
  Client client_;
  const std::string process_ = RandomName();
  // A lock was taken over from a process that did not renew it but may only have been suspended.
  std::atomic<bool> former_owner_may_live_{false};
};

}  // namespace

std::unique_ptr<Storage> OpenS3(const Environment& environment, const Clock& clock,
                                const S3Options& options) {
  S3Options all = options;
  if (const std::optional<std::string> text = environment(kRetrySecondsVariable)) {
    const std::optional<double> seconds = ParseDuration(*text);
    if (!seconds)
      Fail(ErrorCode::kConfig, "{} is '{}': it must be a duration such as 30s or 2m",
           kRetrySecondsVariable, Escape(*text));
    all.client.retry_seconds = *seconds;
  }
  return std::make_unique<S3Storage>(environment, clock, all);
}

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == 0) return std::nullopt;
    return value;
  };
}

}  // namespace renzan::s3
