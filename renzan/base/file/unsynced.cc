#include "renzan/base/file/unsynced.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;

using Random = std::mt19937_64;

uint64_t Below(Random& random, uint64_t n) { return random() % n; }

// One change to a file's bytes since its last fsync.
struct Piece {
  bool truncates = false;  // a truncation to empty by an open; otherwise a write
  uint64_t offset = 0;
  std::string bytes;
};

// How many of a write's bytes reached the disk: often none, because of delayed allocation.
uint64_t Reached(uint64_t bytes, Random& random) {
  return Below(random, 3) == 0 ? 0 : Below(random, bytes + 1);
}

void Put(std::string& content, uint64_t offset, std::string_view bytes) {
  if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size());
  content.replace(offset, bytes.size(), bytes);
}

void Apply(std::string& content, const Piece& piece) {
  if (piece.truncates) {
    content.clear();
  } else {
    Put(content, piece.offset, piece.bytes);
  }
}

void ApplyCut(std::string& content, const Piece& piece, uint64_t bytes) {
  if (bytes > 0) Put(content, piece.offset, std::string_view(piece.bytes).substr(0, bytes));
}

// A write of which only the first bytes reached the disk; the rest is missing, zeros or garbage.
void ApplyCorrupt(std::string& content, Piece piece, Random& random) {
  const uint64_t kept = Reached(piece.bytes.size(), random);
  const uint64_t fate = Below(random, 3);
  if (fate == 0) return ApplyCut(content, piece, kept);
  for (uint64_t i = kept; i < piece.bytes.size(); ++i)
    piece.bytes[i] = fate == 1 ? '\0' : static_cast<char>(random());
  Apply(content, piece);
}

// What a power loss leaves of a file whose durable content is followed by unsynced `pieces`.
std::string Survivor(const std::string& durable, const std::vector<Piece>& pieces, Random& random) {
  std::string content = durable;
  const uint64_t fate = Below(random, 4);
  if (fate == 0) {  // everything reached the disk
    for (const Piece& piece : pieces) Apply(content, piece);
  } else if (fate == 1) {  // written in order, up to some point
    const size_t whole = Below(random, pieces.size() + 1);
    for (size_t i = 0; i < whole; ++i) Apply(content, pieces[i]);
    if (whole < pieces.size())  // no-op for a truncation, which has no bytes
      ApplyCut(content, pieces[whole], Reached(pieces[whole].bytes.size(), random));
  } else {  // in any order
    for (const Piece& piece : pieces) {
      if (Below(random, 2) == 0) {
        Apply(content, piece);
      } else if (!piece.truncates) {
        ApplyCorrupt(content, piece, random);
      }
    }
  }
  return content;
}

std::string Normal(const std::string& path) {
  std::string normal = fs::absolute(path).lexically_normal().string();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

std::string NameOf(const std::string& path) { return fs::path(Normal(path)).filename().string(); }

}  // namespace

struct Unsynced::Node {
  enum Kind { kFile, kDirectory, kOther };

  Kind kind = kFile;
  // Its place in the tree. A node without a parent is the root or has been removed.
  Node* parent = nullptr;
  std::string name;
  std::map<std::string, NodePtr> children;  // of a directory: those seen so far

  bool loaded = false;  // of a file: `durable` is known
  std::string durable;
  std::vector<Piece> pieces;

  std::string Content() const {
    std::string content = durable;
    for (const Piece& piece : pieces) Apply(content, piece);
    return content;
  }
};

struct Unsynced::Change {
  enum Kind { kMade, kRemoved, kRenamed };

  Kind kind;
  NodePtr directory;
  std::string name;
  NodePtr node;      // what was made, removed or renamed
  std::string from;  // kRenamed: the name before
  NodePtr replaced;  // kRenamed: what had `name` before, or null

  bool SharesNameWith(const Change& other) const {
    if (directory != other.directory) return false;
    const auto names = [](const Change& change, const std::string& name) {
      return change.name == name || (change.kind == kRenamed && change.from == name);
    };
    return names(other, name) || (kind == kRenamed && names(other, from));
  }
};

namespace {

using Node = Unsynced::Node;

void Detach(Node& node) {
  if (node.parent == nullptr) return;
  Node* const parent = std::exchange(node.parent, nullptr);
  parent->children.erase(node.name);
}

void Attach(Node& directory, const std::string& name, const Unsynced::NodePtr& node) {
  const auto there = directory.children.find(name);
  if (there != directory.children.end()) Detach(*there->second);
  Detach(*node);
  node->parent = &directory;
  node->name = name;
  directory.children[name] = node;
}

std::string PathOf(const Node& node) {
  if (node.parent == nullptr) return "";
  return PathOf(*node.parent) + "/" + node.name;
}

bool IsBelow(const Node* node, const Node* root) {
  while (node != nullptr && node != root) node = node->parent;
  return node == root;
}

// Uses the real file system, bypassing any installed one.
void WriteForReal(const std::string& path, const std::string& content) {
  FileSystem machine;
  const int fd = machine.OpenForWriting(path);
  CHECK_MSG(fd >= 0, "cannot restore {}: was it changed bypassing the lossy file system?", path);
  for (size_t done = 0; done < content.size();) {
    const ssize_t wrote = machine.Write(fd, content.data() + done, content.size() - done);
    CHECK(wrote > 0);
    done += static_cast<size_t>(wrote);
  }
  CHECK(machine.Close(fd) == 0);
}

void PutBack(Node& directory, const std::string& name, const Unsynced::NodePtr& node) {
  Attach(directory, name, node);
  const std::string path = PathOf(*node);
  if (node->kind == Node::kDirectory) {
    CHECK(FileSystem().MakeDirectory(path) == 0);
  } else {
    WriteForReal(path, node->Content());
  }
}

void LoseBytes(Node& node, Random& random) {
  for (const auto& [name, child] : node.children) LoseBytes(*child, random);
  if (!node.pieces.empty()) WriteForReal(PathOf(node), Survivor(node.durable, node.pieces, random));
}

}  // namespace

Unsynced::Unsynced() : root_(std::make_shared<Node>()) { root_->kind = Node::kDirectory; }
Unsynced::~Unsynced() = default;

Unsynced::NodePtr Unsynced::Find(const std::string& path) {
  NodePtr node = root_;
  std::string so_far;
  for (const fs::path& part : fs::path(Normal(path)).relative_path()) {
    const std::string name = part.string();
    so_far += "/" + name;
    const auto known = node->children.find(name);
    if (known != node->children.end()) {
      node = known->second;
      continue;
    }
    const fs::file_type type = fs::symlink_status(so_far).type();
    if (type == fs::file_type::not_found) return nullptr;
    const NodePtr child = std::make_shared<Node>();
    child->kind = type == fs::file_type::regular     ? Node::kFile
                  : type == fs::file_type::directory ? Node::kDirectory
                                                     : Node::kOther;
    Attach(*node, name, child);
    node = child;
  }
  return node;
}

Unsynced::NodePtr Unsynced::FindDirectory(const std::string& path) {
  const NodePtr directory = Find(fs::path(Normal(path)).parent_path().string());
  CHECK_MSG(directory != nullptr, "{} has no directory", path);
  return directory;
}

Unsynced::NodePtr Unsynced::Load(const std::string& path) {
  const NodePtr node = Find(path);
  if (node != nullptr && node->kind == Node::kFile && !node->loaded) {
    node->durable = ReadFile(path);
    node->loaded = true;
  }
  return node;
}

Unsynced::NodePtr Unsynced::Opened(const std::string& path, const NodePtr& before) {
  if (before != nullptr) {
    if (before->kind != Node::kFile) return nullptr;
    before->pieces.push_back({.truncates = true});
    return before;
  }
  const NodePtr file = std::make_shared<Node>();
  file->loaded = true;
  const NodePtr directory = FindDirectory(path);
  Attach(*directory, NameOf(path), file);
  changes_.push_back({Change::kMade, directory, NameOf(path), file, "", nullptr});
  return file;
}

void Unsynced::Wrote(const NodePtr& file, uint64_t offset, const void* data, size_t bytes) {
  file->pieces.push_back(
      {.offset = offset, .bytes = std::string(static_cast<const char*>(data), bytes)});
}

void Unsynced::Synced(const NodePtr& file) {
  file->durable = file->Content();
  file->pieces.clear();
}

void Unsynced::MadeDirectory(const std::string& path) {
  const NodePtr made = std::make_shared<Node>();
  made->kind = Node::kDirectory;
  const NodePtr directory = FindDirectory(path);
  Attach(*directory, NameOf(path), made);
  changes_.push_back({Change::kMade, directory, NameOf(path), made, "", nullptr});
}

void Unsynced::Removed(const std::string& path, const NodePtr& before) {
  Detach(*before);
  const NodePtr directory = FindDirectory(path);
  // Links and devices could not be restored: treated as permanently removed.
  if (before->kind != Node::kOther)
    changes_.push_back({Change::kRemoved, directory, NameOf(path), before, "", nullptr});
}

void Unsynced::Renamed(const std::string& from, const std::string& to, const NodePtr& before) {
  const NodePtr directory = FindDirectory(to);
  const auto found = directory->children.find(NameOf(from));
  CHECK_MSG(found != directory->children.end(), "{} was renamed unseen", from);
  const NodePtr node = found->second;
  Attach(*directory, NameOf(to), node);
  const NodePtr replaced = before != nullptr && before->kind != Node::kOther ? before : nullptr;
  changes_.push_back({Change::kRenamed, directory, NameOf(to), node, NameOf(from), replaced});
}

void Unsynced::SyncedDirectory(const std::string& path) {
  const NodePtr directory = Find(path);
  std::erase_if(changes_, [&](const Change& change) { return change.directory == directory; });
}

void Unsynced::Undo(const Change& change) {
  if (!IsBelow(change.directory.get(), root_.get()))
    return;  // the directory itself no longer exists
  const std::string path = PathOf(*change.directory) + "/" + change.name;
  switch (change.kind) {
    case Change::kMade:
      Detach(*change.node);
      CHECK_MSG(FileSystem().RemoveTree(path) == 0, "cannot remove {}", path);
      break;
    case Change::kRemoved:
      PutBack(*change.directory, change.name, change.node);
      break;
    case Change::kRenamed:
      Attach(*change.directory, change.from, change.node);
      CHECK_MSG(FileSystem().Rename(path, PathOf(*change.node)) == 0, "cannot rename {}", path);
      if (change.replaced != nullptr) PutBack(*change.directory, change.name, change.replaced);
      break;
  }
}

void Unsynced::Crash(uint64_t seed) {
  Random random(seed);
  // All, none or some of the name changes survive: the extremes find most bugs.
  const uint64_t mood = Below(random, 3);
  std::vector<Change> lost;
  for (const Change& change : changes_) {
    const bool drawn = mood == 0 ? false : mood == 1 ? true : Below(random, 2) == 0;
    const bool follows = std::any_of(lost.begin(), lost.end(), [&](const Change& earlier) {
      return change.SharesNameWith(earlier);
    });
    if (drawn || follows) lost.push_back(change);
  }
  for (auto change = lost.rbegin(); change != lost.rend(); ++change) Undo(*change);
  LoseBytes(*root_, random);
  changes_.clear();
  root_ = std::make_shared<Node>();
  root_->kind = Node::kDirectory;
}

}  // namespace renzan
