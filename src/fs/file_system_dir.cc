// Directories: listings as the kernel reads them. Offsets: 1 after ".", 2 after "..", n + 3 after
// entry n; stable because a handle keeps the listing it began with.
#include <utility>

#include "fs/file_system.h"
#include "fs/file_system_handles.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::MakeError;
using core::Result;

constexpr uint64_t kDots = 2;

}  // namespace

Result<HandleId> FileSystem::OpenDir(NodeId id) {
  if (stopped_) return MakeError(Code::kUnavailable, "the file system is stopping");
  auto node = nodes_.Get(id);
  if (!node || !node->is_dir()) return MakeError(Code::kStale, "the directory is not known");
  return dirs_.Add(std::make_shared<OpenDirectory>(std::move(node)));
}

void FileSystem::ReleaseDir(HandleId handle) { dirs_.Remove(handle); }

void FileSystem::LoadDir(HandleId handle, uint64_t offset, Reply<DirSnapshot> reply) {
  const auto dir = dirs_.Get(handle);
  if (!dir) return void(reply.Send(MakeError(Code::kInternal, "no such open directory")));
  if (offset != 0) {
    DirSnapshot snapshot{dir->node, nullptr};
    {
      core::MutexLock lock(dir->mu);
      snapshot.listing = dir->listing;
    }
    if (snapshot.listing) return void(reply.Send(std::move(snapshot)));
  }
  names_->List(dir->node->facts().dir, NameDeadline(),
               [this, under_way = UnderWay(*this), dir,
                reply = std::move(reply)](Result<std::shared_ptr<const Listing>> listing) mutable {
                 if (!listing) return void(reply.Send(std::move(listing).error()));
                 {
                   core::MutexLock lock(dir->mu);
                   dir->listing = *listing;
                 }
                 dir->node->NoteListed(Now());
                 reply.Send(DirSnapshot{dir->node, std::move(listing).value()});
               });
}

void FileSystem::WriteDir(const DirSnapshot& snapshot, uint64_t offset, bool attributes,
                          DirWriter& writer) {
  const Node& dir = *snapshot.dir;
  const auto& parent = dir.facts().parent;
  for (; offset < kDots; ++offset) {
    DirEntry entry;
    entry.name = offset == 0 ? "." : "..";
    entry.kind = EntryKind::kDirectory;
    if (!writer.Fits(entry.name)) return;
    entry.ino = offset == 0 || !parent ? dir.facts().ino : parent->facts().ino;
    entry.next_offset = offset + 1;
    writer.Add(entry);
  }
  const auto& entries = snapshot.listing->entries;
  for (; offset - kDots < entries.size(); ++offset) {
    const ListedEntry& listed = entries[offset - kDots];
    if (!writer.Fits(listed.name)) return;
    DirEntry entry;
    entry.name = listed.name;
    entry.kind = listed.kind;
    entry.next_offset = offset + 1;
    if (attributes) entry.known = EntryIfKnown(snapshot.dir, listed);
    entry.ino = entry.known ? entry.known->attr.ino : nodes_.InodeOf(dir, listed.name);
    writer.Add(entry);
  }
}

std::optional<Entry> FileSystem::EntryIfKnown(const std::shared_ptr<Node>& dir,
                                              const ListedEntry& listed) {
  auto found = names_->Known(dir->facts().dir, listed);
  if (!found) return std::nullopt;
  auto entry = RememberFound(dir, listed.name, std::move(*found));
  if (!entry) return std::nullopt;
  return std::move(entry).value();
}

}  // namespace dartfs::fs
