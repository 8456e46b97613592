#include "fs/file_system.h"

#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/text.h"
#include "fs/file_system_handles.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::MakeError;
using core::Result;

constexpr core::Duration kNegativeTtl = std::chrono::seconds(1);
// A version never changes and its node stands for it alone: as good as for ever.
constexpr core::Duration kVersionTtl = std::chrono::hours(24);
// Reads of one handle that had to wait, until its object is looked at again for filling.
constexpr uint32_t kReadsPerLook = 32;
// Even where the engine's time is up, so that one open does not ask twice.
constexpr core::Duration kShortestTtl = std::chrono::milliseconds(100);

core::Error UnknownNode() { return MakeError(Code::kStale, "the node is not known (any more)"); }
core::Error UnknownHandle() { return MakeError(Code::kInternal, "no such open file"); }
core::Error Unmounted() { return MakeError(Code::kUnavailable, "the file system is stopping"); }

int64_t WallSeconds(core::Clock& clock) {
  return std::chrono::duration_cast<std::chrono::seconds>(clock.WallNow().time_since_epoch())
      .count();
}

}  // namespace

FileSystem::FileSystem(FileSystemOptions options, std::unique_ptr<Namespace> names,
                       core::Engine& engine)
    : options_(std::move(options)),
      mounted_at_(WallSeconds(engine.scheduler().clock())),
      names_(std::move(names)),
      engine_(engine),
      nodes_(names_->Root(), mounted_at_),
      trim_(engine.scheduler(), [] { malloc_trim(0); }),
      modes_(engine),
      fills_(options_.fill, options_.grid, engine) {}

FileSystem::~FileSystem() {
  Stop();
  DARTFS_CHECK(Idle());
}

core::TimePoint FileSystem::ReadDeadline() const {
  return options_.timeout == core::Duration::zero() ? core::kNoDeadline : Now() + options_.timeout;
}

core::TimePoint FileSystem::NameDeadline() const {
  return Now() + (options_.timeout == core::Duration::zero() ? kNameTimeout : options_.timeout);
}

Attr FileSystem::AttrOf(const Node& node) const {
  const auto& facts = node.facts();
  Attr attr;
  attr.ino = facts.ino;
  attr.mtime = facts.mtime;
  if (node.is_dir()) {
    attr.mode = S_IFDIR | (0555 & ~options_.umask);
    attr.links = 2;
    attr.ttl = options_.ttl;
  } else {
    attr.mode = S_IFREG | (0444 & ~options_.umask);
    attr.size = facts.size;
    attr.ttl = kVersionTtl;
  }
  return attr;
}

Result<Attr> FileSystem::GetAttr(NodeId id) const {
  const auto node = nodes_.Get(id);
  if (!node) return UnknownNode();
  return AttrOf(*node);
}

// How long this is the current version without asking the origin.
core::Duration FileSystem::FreshFor(const core::Object& object, const core::Url& url) const {
  if (object.facts().immutable) return kVersionTtl;
  return std::clamp(engine_.TtlLeft(url), kShortestTtl, std::max(options_.ttl, kShortestTtl));
}

void FileSystem::Lookup(NodeId parent_id, std::string name, Reply<Entry> reply) {
  if (stopped_) return void(reply.Send(Unmounted()));
  const auto parent = nodes_.Get(parent_id);
  if (!parent || !parent->is_dir()) return void(reply.Send(UnknownNode()));
  const DirRef& dir = parent->facts().dir;
  if (parent->NoteLook(Now())) names_->ProbeAhead(dir);
  // The name is copied into the completion: the view below lives only for the call.
  const std::string asked = name;
  names_->Lookup(dir, asked, NameDeadline(),
                 [this, under_way = UnderWay(*this), parent, name = std::move(name),
                  reply = std::move(reply)](Result<Found> found) mutable {
                   AnswerLookup(parent, name, std::move(found), std::move(reply));
                 });
}

void FileSystem::AnswerLookup(const std::shared_ptr<Node>& parent, std::string_view name,
                              Result<Found> found, Reply<Entry> reply) {
  if (!found) {
    const Code code = found.error().code;
    if (code == Code::kNotFound || code == Code::kGone) {
      Entry absent;
      absent.ttl = kNegativeTtl;
      reply.Send(absent);
    } else {
      reply.Send(std::move(found).error());
    }
    return;
  }
  Result<Entry> entry = RememberFound(parent, name, std::move(found).value());
  const NodeId node = entry ? entry->node : kNoNode;
  if (!reply.Send(std::move(entry)) && node != kNoNode) Forget(node, 1);
}

Result<Entry> FileSystem::RememberFound(const std::shared_ptr<Node>& parent, std::string_view name,
                                        Found found) {
  if (found.kind == EntryKind::kFile && !found.object && !found.promise) {
    return MakeError(Code::kInternal, "a file of which nothing is known");
  }
  core::Duration ttl = options_.ttl;
  std::optional<int64_t> mtime = found.mtime;
  core::TimePoint fresh_until{};
  if (found.object) {
    const auto& facts = found.object->facts();
    if (!mtime && facts.meta.last_modified >= 0) mtime = facts.meta.last_modified;
    ttl = FreshFor(*found.object, found.url ? *found.url : facts.url);
    fresh_until = Now() + ttl;
  }
  NodeInit init{.kind = found.kind,
                .dir = std::move(found.dir),
                .object = std::move(found.object),
                .promise = std::move(found.promise),
                .mtime = mtime.value_or(mounted_at_),
                .fresh_until = fresh_until};
  TRY_ASSIGN(const auto node, nodes_.Remember(parent, name, std::move(init)));
  return Entry{.node = node->facts().id, .ttl = ttl, .attr = AttrOf(*node)};
}

core::Url FileSystem::UrlOf(const Node& node, const core::Object& object) const {
  auto url = names_->UrlOf(node.facts().parent->facts().dir, node.facts().name);
  return url ? std::move(url).value() : object.facts().url;
}

void FileSystem::Open(NodeId id, Reply<OpenedFile> reply) {
  if (stopped_) return void(reply.Send(Unmounted()));
  const auto node = nodes_.Get(id);
  if (!node) return void(reply.Send(UnknownNode()));
  if (node->is_dir()) return void(reply.Send(MakeError(Code::kIsDirectory, "a directory")));
  if (node->retired()) {
    return void(reply.Send(MakeError(Code::kStale, "the name has another node now")));
  }
  auto object = node->object();
  const bool over = object && (object->superseded() || object->refused());
  // A new lookup finds the version there is now, but for a promise, which only an open resolves.
  if (over && node->version_tag() == node->facts().tag) {
    return void(reply.Send(MakeError(Code::kStale, "there is another version now")));
  }
  if (object && !over && Now() < node->fresh_until()) {
    return FinishOpen(node, std::move(object), std::move(reply));
  }
  // Nobody has asked the origin yet, or the kernel did not look the name up again itself: opened
  // through an old path or descriptor.
  const auto& facts = node->facts();
  names_->Open(facts.parent->facts().dir, facts.name, NameDeadline(),
               [this, under_way = UnderWay(*this), node,
                reply = std::move(reply)](Result<Found> found) mutable {
                 if (!found) return void(reply.Send(std::move(found).error()));
                 bool current = found->object != nullptr;
                 if (current) {
                   const core::Url url = found->url ? *found->url : found->object->facts().url;
                   current =
                       nodes_.Refresh(*node, found->object, Now() + FreshFor(*found->object, url));
                 }
                 if (!current) {
                   return void(reply.Send(MakeError(Code::kStale, "there is another version now")));
                 }
                 FinishOpen(node, std::move(found->object), std::move(reply));
               });
}

void FileSystem::FinishOpen(const std::shared_ptr<Node>& node, std::shared_ptr<core::Object> object,
                            Reply<OpenedFile> reply) {
  const NodeId id = node->facts().id;
  modes_.Enter(id, object,
               [this, under_way = UnderWay(*this), node, object,
                reply = std::move(reply)](Result<std::optional<int32_t>> backing_id) mutable {
                 if (!backing_id) {
                   node->Retire();
                   return void(reply.Send(backing_id.error()));
                 }
                 OpenedFile opened;
                 opened.handle = MakeHandle(*node, std::move(object));
                 opened.backing_id = *backing_id;
                 const HandleId handle = opened.handle;
                 if (!reply.Send(opened)) Release(handle);
               });
}

HandleId FileSystem::MakeHandle(const Node& node, std::shared_ptr<core::Object> object) {
  core::Requester requester{UrlOf(node, *object), options_.authorization};
  if (options_.fill == FillMode::kAll) fills_.Consider(object, requester);
  auto reader = engine_.MakeReader(std::move(object), requester);
  return files_.Add(
      std::make_shared<OpenFile>(std::move(reader), std::move(requester), node.facts().id));
}

std::optional<Result<core::ReadBytes>> FileSystem::TryRead(HandleId handle, uint64_t offset,
                                                           std::span<std::byte> into) {
  const auto file = files_.Get(handle);
  if (!file) return UnknownHandle();
  if (offset >= file->size) return core::ReadBytes{};
  const size_t wanted = std::min<uint64_t>(into.size(), file->size - offset);
  std::optional<core::ReadBytes> bytes = file->reader->TryRead(offset, into.first(wanted));
  if (!bytes) return std::nullopt;
  return std::move(*bytes);
}

void FileSystem::Read(HandleId handle, uint64_t offset, size_t size, Reply<core::ReadBytes> reply) {
  const auto file = files_.Get(handle);
  if (!file) return void(reply.Send(UnknownHandle()));
  if (offset >= file->size) return void(reply.Send(core::ReadBytes{}));
  const size_t wanted = std::min<uint64_t>(size, file->size - offset);
  const auto pending = reply.pending();
  file->reading->fetch_add(1, std::memory_order_relaxed);
  if (file->reads.fetch_add(1, std::memory_order_relaxed) % kReadsPerLook == kReadsPerLook - 1) {
    fills_.Consider(file->reader->object(), file->requester);
  }
  const core::ReadId id = file->reader->Read(
      offset, wanted, ReadDeadline(),
      [wanted, reading = file->reading,
       reply = std::move(reply)](Result<core::ReadBytes> bytes) mutable {
        reading->fetch_sub(1, std::memory_order_relaxed);
        if (bytes && bytes->bytes.size() != wanted) {
          bytes = MakeError(Code::kInternal, "a read of another length than asked for");
        }
        reply.Send(std::move(bytes));
      });
  pending->OnCancel([file, id] { file->reader->Cancel(id); });
}

void FileSystem::Flush(HandleId handle) {
  const auto file = files_.Get(handle);
  if (file && file->reading->load(std::memory_order_relaxed) > 0) file->reader->LowerInterest();
}

void FileSystem::Release(HandleId handle) {
  const auto file = files_.Remove(handle);
  if (file == nullptr) return;
  modes_.Leave(file->node);
  const auto& object = file->reader->object();
  fills_.Consider(object, file->requester);
  modes_.Prepare(object);
}

SpaceReport FileSystem::Space() const {
  const core::StoreStats stats = engine_.store().Stats();
  return {.limit_bytes = stats.limit_bytes, .used_bytes = stats.used_bytes, .files = nodes_.size()};
}

FileSystemStats FileSystem::Stats() const {
  return {.nodes = nodes_.size(),
          .open_files = files_.size(),
          .open_dirs = dirs_.size(),
          .passthrough_nodes = modes_.nodes_in_passthrough(),
          .passthrough_opens = modes_.passthrough_opens(),
          .refused_nodes = nodes_.refused()};
}

void FileSystem::Stop() {
  stopped_ = true;
  fills_.Stop();
  files_.RemoveAll();
  dirs_.RemoveAll();
}

}  // namespace dartfs::fs
