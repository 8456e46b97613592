// FileSystem: the whole logic of a mount in terms of node IDs, handles and replies, without FUSE
// (fuse_ops translates). Names come from a Namespace, bytes from the Engine.
//
// Thread-safe. No call blocks on the network: what has to wait moves its reply into a completion. A
// call that takes a Reply answers it exactly once, on the caller's stack or an engine thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/mutex.h"
#include "core/engine/engine.h"
#include "fs/auto_fill.h"
#include "fs/handle_table.h"
#include "fs/idle_trim.h"
#include "fs/namespace.h"
#include "fs/node_table.h"
#include "fs/open_modes.h"
#include "fs/reply.h"

namespace dartfs::fs {

// Of lookups, opens and listings where reads wait for ever: nobody may need their answer any more.
inline constexpr core::Duration kNameTimeout = std::chrono::seconds(60);

struct FileSystemOptions {
  core::Duration ttl = std::chrono::seconds(60);  // how long the kernel keeps a name at most
  // Of any request. Zero: none for reads, kNameTimeout for the others.
  core::Duration timeout = std::chrono::seconds(60);
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t umask = 0;
  core::Grid grid;            // the engine's
  std::string authorization;  // of this mount's reads, as in core::Requester
  FillMode fill = FillMode::kOff;
};

struct Attr {
  uint64_t ino = 0;
  mode_t mode = 0;  // with the file type
  uint64_t size = 0;
  uint32_t links = 1;
  int64_t mtime = 0;  // seconds since the epoch
  core::Duration ttl{};
};

// node == kNoNode: the name does not exist, and the kernel may remember that for `ttl`.
struct Entry {
  NodeId node = kNoNode;
  core::Duration ttl{};
  Attr attr;
};

struct OpenedFile {
  HandleId handle = 0;
  std::optional<int32_t> backing_id;  // the kernel reads the file by itself (OpenModes)
};

// One entry of a directory on its way out. `known`: its attributes, counted as a lookup; absent
// when they would cost a request.
struct DirEntry {
  std::string_view name;
  uint64_t ino = 0;
  EntryKind kind = EntryKind::kFile;
  uint64_t next_offset = 0;
  std::optional<Entry> known;
};

class DirWriter {
 public:
  virtual ~DirWriter() = default;
  // Whether an entry of that name still fits; only then Add follows.
  virtual bool Fits(std::string_view name) = 0;
  virtual void Add(const DirEntry& entry) = 0;
};

// What one reading of a directory shows: offsets stay valid as long as it is kept.
struct DirSnapshot {
  std::shared_ptr<Node> dir;
  std::shared_ptr<const Listing> listing;
};

struct SpaceReport {
  uint64_t limit_bytes = 0, used_bytes = 0;
  uint64_t files = 0;
};

struct FileSystemStats {
  size_t nodes = 0, open_files = 0, open_dirs = 0;
  size_t passthrough_nodes = 0;  // read by the kernel itself at present
  uint64_t passthrough_opens = 0;
  uint64_t refused_nodes = 0;
};

class FileSystem {
 public:
  // The engine outlives it.
  FileSystem(FileSystemOptions options, std::unique_ptr<Namespace> names, core::Engine& engine);
  // Only once Idle.
  ~FileSystem();

  void Lookup(NodeId parent, std::string name, Reply<Entry> reply);
  void Forget(NodeId node, uint64_t lookups) {
    if (nodes_.Forget(node, lookups)) trim_.Note(1);
  }
  core::Result<Attr> GetAttr(NodeId node) const;

  // Files may be given to the kernel from here on; null: no more (the session ends).
  void SetBacking(std::shared_ptr<BackingFiles> files) { modes_.SetBacking(std::move(files)); }

  // kStale when the name has another version now: the kernel then looks it up again.
  void Open(NodeId node, Reply<OpenedFile> reply);
  // The bytes (short only at the end of the file), in `into` or elsewhere in memory; nullopt: use
  // Read. Does not block.
  std::optional<core::Result<core::ReadBytes>> TryRead(HandleId handle, uint64_t offset,
                                                       std::span<std::byte> into);
  // [offset, offset + size) cut to the end of the file: all of it or an error.
  void Read(HandleId handle, uint64_t offset, size_t size, Reply<core::ReadBytes> reply);
  // A descriptor was closed, perhaps because its process was killed: what it waits for is no longer
  // wanted, but still answered.
  void Flush(HandleId handle);
  // The end of a handle whose reads have all been answered.
  void Release(HandleId handle);

  core::Result<HandleId> OpenDir(NodeId node);
  // What a reading from `offset` shows: a fresh listing at 0, else the one this handle began with.
  void LoadDir(HandleId handle, uint64_t offset, Reply<DirSnapshot> reply);
  // Writes entries from `offset` until one does not fit. With `attributes` those that are known
  // without a request go along, and count as looked up. Does not block.
  void WriteDir(const DirSnapshot& snapshot, uint64_t offset, bool attributes, DirWriter& writer);
  void ReleaseDir(HandleId handle);

  // user.dartfs.{url,version,size,key,verified,cached_bytes}; nullopt for any other.
  core::Result<std::optional<std::string>> GetXattr(NodeId node, std::string_view name) const;
  core::Result<std::vector<std::string>> ListXattr(NodeId node) const;
  SpaceReport Space() const;

  const FileSystemOptions& options() const { return options_; }
  FileSystemStats Stats() const;

  // Ends handles (their reads with kCancelled) and refuses new ones. Twice is fine.
  void Stop();
  // No completion will come back to this object. After Stop that is so once every lookup and
  // listing under way has ended, by its deadline at the latest.
  bool Idle() const { return under_way_.load(std::memory_order_acquire) == 0; }

 private:
  struct OpenFile;
  struct OpenDirectory;
  class UnderWay;  // counts a call that a Namespace will complete

  core::TimePoint Now() const { return engine_.scheduler().clock().Now(); }
  core::TimePoint ReadDeadline() const;
  core::TimePoint NameDeadline() const;
  Attr AttrOf(const Node& node) const;
  core::Duration FreshFor(const core::Object& object, const core::Url& url) const;
  core::Result<Entry> RememberFound(const std::shared_ptr<Node>& parent, std::string_view name,
                                    Found found);
  void AnswerLookup(const std::shared_ptr<Node>& parent, std::string_view name,
                    core::Result<Found> found, Reply<Entry> reply);
  void FinishOpen(const std::shared_ptr<Node>& node, std::shared_ptr<core::Object> object,
                  Reply<OpenedFile> reply);
  HandleId MakeHandle(const Node& node, std::shared_ptr<core::Object> object);
  core::Url UrlOf(const Node& node, const core::Object& object) const;
  std::optional<Entry> EntryIfKnown(const std::shared_ptr<Node>& dir, const ListedEntry& entry);

  const FileSystemOptions options_;
  const int64_t mounted_at_;  // seconds since the epoch: mtime of what has none
  const std::unique_ptr<Namespace> names_;
  core::Engine& engine_;

  NodeTable nodes_;
  IdleTrim trim_;
  OpenModes modes_;
  AutoFill fills_;
  HandleTable<OpenFile> files_;
  HandleTable<OpenDirectory> dirs_;
  std::atomic<bool> stopped_{false};
  std::atomic<size_t> under_way_{0};
};

}  // namespace dartfs::fs
