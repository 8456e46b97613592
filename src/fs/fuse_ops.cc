#include "fs/fuse_ops.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/buffer.h"
#include "fs/errno_map.h"
#include "fs/fuse_passthrough.h"
#include "fs/name_mapping.h"

namespace dartfs::fs {
namespace {

using core::Result;

// What tools read at a time: enough for a good rate, little enough for a program that seeks and
// lets its library fill a buffer of this size each time.
constexpr blksize_t kPreferredIoBytes = 128 << 10;

FuseContext& Context(fuse_req_t req) { return *static_cast<FuseContext*>(fuse_req_userdata(req)); }

double Seconds(core::Duration d) { return std::chrono::duration<double>(d).count(); }

struct stat StatOf(const FileSystem& fs, const Attr& attr) {
  struct stat st {};
  st.st_ino = attr.ino;
  st.st_mode = attr.mode;
  st.st_nlink = attr.links;
  st.st_uid = fs.options().uid;
  st.st_gid = fs.options().gid;
  st.st_size = static_cast<off_t>(attr.size);
  st.st_blksize = kPreferredIoBytes;
  st.st_blocks = static_cast<blkcnt_t>(attr.size / 512 + (attr.size % 512 != 0 ? 1 : 0));
  st.st_mtim.tv_sec = attr.mtime;
  st.st_ctim.tv_sec = attr.mtime;
  st.st_atim.tv_sec = attr.mtime;
  return st;
}

fuse_entry_param EntryParam(const FileSystem& fs, const Entry& entry) {
  fuse_entry_param param{};
  param.ino = entry.node;
  param.entry_timeout = Seconds(entry.ttl);
  if (entry.node == kNoNode) return param;
  param.attr = StatOf(fs, entry.attr);
  param.attr_timeout = Seconds(entry.attr.ttl);
  return param;
}

bool ReplyError(fuse_req_t req, const core::Error& error) {
  return fuse_reply_err(req, ErrnoOf(error)) == 0;
}

// Called under libfuse's locks, perhaps while the request is being answered: only the number, never
// a pointer, leads to what waits.
void OnInterrupt(fuse_req_t req, void* data) {
  FuseContext& context = Context(req);
  context.counts.Count(Op::kInterrupt);
  context.pending->Interrupt(reinterpret_cast<uintptr_t>(data));
}

// kWatched: the kernel sends no interrupt for it (PendingReplies::Watch).
enum class Wait { kInterruptible, kWatched };

// A reply that may be given later: it can be answered early by an interrupt or the end of the
// mount. `send` translates a value: bool(fuse_req_t, T).
template <typename T, typename Send>
Reply<T> Defer(fuse_req_t req, Send send, Wait wait = Wait::kInterruptible) {
  const auto pending = Context(req).pending;
  const uint64_t id = pending->Begin(fuse_req_ctx(req)->pid);
  auto state = std::make_shared<ReplyState<T>>(
      [req, pending, id, send = std::move(send)](Result<T> result) mutable {
        const bool delivered =
            result ? send(req, std::move(result).value()) : ReplyError(req, result.error());
        pending->Remove(id);
        return delivered;
      });
  static_assert(sizeof(void*) >= sizeof(id));
  fuse_req_interrupt_func(req, &OnInterrupt, reinterpret_cast<void*>(id));
  pending->Add(id, state);  // from here on `req` may be answered, and gone
  if (wait == Wait::kWatched) pending->Watch(id);
  return Reply<T>(std::move(state));
}

constexpr uint32_t kUnwanted = FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                               FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_CACHE_SYMLINKS |
                               FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_WRITEBACK_CACHE;
constexpr uint32_t kWanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS |
                             FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
                             FUSE_CAP_EXPLICIT_INVAL_DATA;

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
// `want` and its successor may not both be set by hand.
void ChooseCapabilities(fuse_conn_info* conn) {
  for (uint32_t bit = 1; bit != 0; bit <<= 1) {
    if ((kUnwanted & bit) != 0) fuse_unset_feature_flag(conn, bit);
    if ((kWanted & bit) != 0) fuse_set_feature_flag(conn, bit);
  }
}

void ChoosePassthrough(fuse_conn_info* conn) {
  if (!fuse_set_feature_flag(conn, FUSE_CAP_PASSTHROUGH)) return;
  conn->max_backing_stack_depth = kMaxStackDepth - 1;  // counted from the backing file's own
}
#else
void ChooseCapabilities(fuse_conn_info* conn) {
  conn->want &= ~kUnwanted;
  conn->want |= kWanted & conn->capable;
}

void ChoosePassthrough(fuse_conn_info* conn) { static_cast<void>(conn); }  // fuse_io negotiates it
#endif

void OnInit(void* userdata, fuse_conn_info* conn) {
  auto& context = *static_cast<FuseContext*>(userdata);
  ChooseCapabilities(conn);
  InitState& init = context.init;
  init.flags = kWanted & conn->capable;
  init.has_passthrough = context.want_passthrough && (init.offer.flags & kInitPassthrough) != 0;
  if (init.has_passthrough) ChoosePassthrough(conn);
  conn->max_read = kMaxReadBytes;
  conn->max_background = context.max_background;
  conn->congestion_threshold = context.max_background * 3 / 4;
}

void OnLookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  FuseContext& context = Context(req);
  context.counts.Count(Op::kLookup);
  if (IsOverlong(name)) {
    fuse_reply_err(req, ErrnoNameTooLong());
    return;
  }
  auto reply = Defer<Entry>(req, [&fs = context.fs](fuse_req_t to, const Entry& entry) {
    const fuse_entry_param param = EntryParam(fs, entry);
    return fuse_reply_entry(to, &param) == 0;
  });
  context.fs.Lookup(parent, name, std::move(reply));
}

void OnForget(fuse_req_t req, fuse_ino_t node, uint64_t lookups) {
  Context(req).counts.Count(Op::kForget);
  Context(req).fs.Forget(node, lookups);
  fuse_reply_none(req);
}

void OnForgetMulti(fuse_req_t req, size_t count, fuse_forget_data* forgets) {
  FuseContext& context = Context(req);
  for (size_t i = 0; i < count; ++i) {
    context.counts.Count(Op::kForget);
    context.fs.Forget(forgets[i].ino, forgets[i].nlookup);
  }
  fuse_reply_none(req);
}

void OnGetAttr(fuse_req_t req, fuse_ino_t node, fuse_file_info*) {
  FuseContext& context = Context(req);
  context.counts.Count(Op::kGetAttr);
  const auto attr = context.fs.GetAttr(node);
  if (!attr) {
    ReplyError(req, attr.error());
    return;
  }
  const struct stat st = StatOf(context.fs, *attr);
  fuse_reply_attr(req, &st, Seconds(attr->ttl));
}

// The kernel reads the file by itself. By the protocol's own structure, of which libfuse has a part
// only from 3.17; no other flag may stand beside this one.
bool ReplyPassthroughOpen(fuse_req_t req, const OpenedFile& opened) {
  struct {
    uint64_t fh;
    uint32_t open_flags;
    int32_t backing_id;
  } const answer{opened.handle, kOpenPassthrough, *opened.backing_id};
  return fuse_reply_buf(req, reinterpret_cast<const char*>(&answer), sizeof answer) == 0;
}

void OnOpen(fuse_req_t req, fuse_ino_t node, fuse_file_info* fi) {
  FuseContext& context = Context(req);
  context.counts.Count(Op::kOpen);
  if ((fi->flags & O_ACCMODE) != O_RDONLY) {
    fuse_reply_err(req, ErrnoReadOnly());
    return;
  }
  auto reply = Defer<OpenedFile>(req, [info = *fi](fuse_req_t to, OpenedFile opened) mutable {
    if (opened.backing_id) return ReplyPassthroughOpen(to, opened);
    info.fh = opened.handle;
    info.keep_cache = 1;  // a node is one version
    return fuse_reply_open(to, &info) == 0;
  });
  context.fs.Open(node, std::move(reply));
}

std::span<std::byte> ThreadBuffer(size_t size) {
  // On one huge page: the kernel looks each page of a reply up.
  thread_local core::AlignedBuffer buffer = core::AlignedBuffer::Allocate(2 * kMaxReadBytes);
  return buffer.span().first(std::min(size, buffer.size()));
}

bool ReplyBytes(fuse_req_t req, std::span<const std::byte> bytes) {
  return fuse_reply_buf(req, reinterpret_cast<const char*>(bytes.data()), bytes.size()) == 0;
}

void OnRead(fuse_req_t req, fuse_ino_t, size_t size, off_t offset, fuse_file_info* fi) {
  FuseContext& context = Context(req);
  const auto from = static_cast<uint64_t>(offset);
  const auto buffer = ThreadBuffer(size);
  if (const auto now = context.fs.TryRead(fi->fh, from, buffer)) {
    context.counts.Count(Op::kRead);
    if (*now) {
      ReplyBytes(req, (*now)->bytes);
    } else {
      ReplyError(req, now->error());
    }
    return;
  }
  context.counts.Count(Op::kReadDeferred);
  // A direct read is sent like an asynchronous one: the kernel waits for it without interrupts.
  const bool direct = (fi->flags & O_DIRECT) != 0;
  auto reply = Defer<core::ReadBytes>(
      req, [](fuse_req_t to, const core::ReadBytes& read) { return ReplyBytes(to, read.bytes); },
      direct ? Wait::kWatched : Wait::kInterruptible);
  context.fs.Read(fi->fh, from, buffer.size(), std::move(reply));
}

void OnFlush(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  Context(req).counts.Count(Op::kFlush);
  Context(req).fs.Flush(fi->fh);
  fuse_reply_err(req, 0);
}

void OnRelease(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  Context(req).counts.Count(Op::kRelease);
  Context(req).fs.Release(fi->fh);
  fuse_reply_err(req, 0);
}

void OnOpenDir(fuse_req_t req, fuse_ino_t node, fuse_file_info* fi) {
  FuseContext& context = Context(req);
  context.counts.Count(Op::kOpenDir);
  const auto handle = context.fs.OpenDir(node);
  if (!handle) {
    ReplyError(req, handle.error());
    return;
  }
  fi->fh = *handle;
  if (fuse_reply_open(req, fi) != 0) context.fs.ReleaseDir(*handle);
}

// A READDIR(PLUS) answer in the making. Nodes counted for it are taken back when it is not
// delivered.
class DirBuffer final : public DirWriter {
 public:
  DirBuffer(fuse_req_t req, FileSystem& fs, size_t size, bool plus)
      : req_(req), fs_(fs), plus_(plus), bytes_(size) {}

  bool Fits(std::string_view name) override {
    name_ = name;
    const size_t need = plus_ ? fuse_add_direntry_plus(req_, nullptr, 0, name_.c_str(), nullptr, 0)
                              : fuse_add_direntry(req_, nullptr, 0, name_.c_str(), nullptr, 0);
    return need <= bytes_.size() - used_;
  }

  void Add(const DirEntry& entry) override {
    char* const at = bytes_.data() + used_;
    const size_t room = bytes_.size() - used_;
    const auto next = static_cast<off_t>(entry.next_offset);
    fuse_entry_param param{};
    if (entry.known) {
      param = EntryParam(fs_, *entry.known);
      counted_.push_back(entry.known->node);
    } else {
      param.attr.st_ino = entry.ino;
      param.attr.st_mode = entry.kind == EntryKind::kDirectory ? S_IFDIR : S_IFREG;
    }
    used_ += plus_ ? fuse_add_direntry_plus(req_, at, room, name_.c_str(), &param, next)
                   : fuse_add_direntry(req_, at, room, name_.c_str(), &param.attr, next);
  }

  bool Deliver() {
    if (fuse_reply_buf(req_, bytes_.data(), used_) == 0) return true;
    for (const NodeId node : counted_) fs_.Forget(node, 1);
    return false;
  }

 private:
  const fuse_req_t req_;
  FileSystem& fs_;
  const bool plus_;
  std::vector<char> bytes_;
  size_t used_ = 0;
  std::string name_;
  std::vector<NodeId> counted_;
};

void ReadDirectory(fuse_req_t req, size_t size, off_t offset, fuse_file_info* fi, bool plus) {
  FuseContext& context = Context(req);
  context.counts.Count(plus ? Op::kReadDirPlus : Op::kReadDir);
  const auto from = static_cast<uint64_t>(offset);
  const size_t room = std::min<size_t>(size, kMaxReadBytes);
  auto reply = Defer<DirSnapshot>(
      req, [&fs = context.fs, from, room, plus](fuse_req_t to, const DirSnapshot& snapshot) {
        DirBuffer buffer(to, fs, room, plus);
        fs.WriteDir(snapshot, from, plus, buffer);
        return buffer.Deliver();
      });
  context.fs.LoadDir(fi->fh, from, std::move(reply));
}

void OnReadDir(fuse_req_t req, fuse_ino_t, size_t size, off_t offset, fuse_file_info* fi) {
  ReadDirectory(req, size, offset, fi, false);
}

void OnReadDirPlus(fuse_req_t req, fuse_ino_t, size_t size, off_t offset, fuse_file_info* fi) {
  ReadDirectory(req, size, offset, fi, true);
}

void OnReleaseDir(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  Context(req).counts.Count(Op::kReleaseDir);
  Context(req).fs.ReleaseDir(fi->fh);
  fuse_reply_err(req, 0);
}

// size 0 asks how long the value is.
void ReplyXattr(fuse_req_t req, std::string_view value, size_t size) {
  if (size == 0) {
    fuse_reply_xattr(req, value.size());
  } else if (size < value.size()) {
    fuse_reply_err(req, ErrnoRange());
  } else {
    fuse_reply_buf(req, value.data(), value.size());
  }
}

void OnGetXattr(fuse_req_t req, fuse_ino_t node, const char* name, size_t size) {
  FuseContext& context = Context(req);
  context.counts.Count(Op::kXattr);
  const std::string_view asked = name;
  if (asked.starts_with("system.")) {
    fuse_reply_err(req, ErrnoNotSupported());
    return;
  }
  const auto value = context.fs.GetXattr(node, asked);
  if (!value) {
    ReplyError(req, value.error());
  } else if (!value->has_value()) {
    fuse_reply_err(req, ErrnoNoAttribute());
  } else {
    ReplyXattr(req, **value, size);
  }
}

void OnListXattr(fuse_req_t req, fuse_ino_t node, size_t size) {
  FuseContext& context = Context(req);
  context.counts.Count(Op::kXattr);
  const auto names = context.fs.ListXattr(node);
  if (!names) {
    ReplyError(req, names.error());
    return;
  }
  std::string list;
  for (const std::string& name : *names) list.append(name).push_back('\0');
  ReplyXattr(req, list, size);
}

void OnStatFs(fuse_req_t req, fuse_ino_t) {
  FuseContext& context = Context(req);
  context.counts.Count(Op::kStatFs);
  constexpr uint64_t kUnit = core::kPageSize;
  const SpaceReport space = context.fs.Space();
  const uint64_t used = std::min(space.used_bytes, space.limit_bytes);
  struct statvfs out {};
  out.f_bsize = kUnit;
  out.f_frsize = kUnit;
  out.f_blocks = space.limit_bytes / kUnit;
  out.f_bfree = (space.limit_bytes - used) / kUnit;
  out.f_bavail = out.f_bfree;
  out.f_files = space.files;
  out.f_namemax = kMaxNameBytes;
  fuse_reply_statfs(req, &out);
}

// The mount is read-only, so the kernel refuses these itself; a remount with `rw` must not change
// it.
template <typename... Args>
void Refuse(fuse_req_t req, Args...) {
  Context(req).counts.Count(Op::kRefusedWrite);
  fuse_reply_err(req, ErrnoReadOnly());
}

}  // namespace

fuse_lowlevel_ops FuseOperations() {
  fuse_lowlevel_ops ops{};
  ops.init = OnInit;
  ops.lookup = OnLookup;
  ops.forget = OnForget;
  ops.forget_multi = OnForgetMulti;
  ops.getattr = OnGetAttr;
  ops.open = OnOpen;
  ops.read = OnRead;
  ops.flush = OnFlush;
  ops.release = OnRelease;
  ops.opendir = OnOpenDir;
  ops.readdir = OnReadDir;
  ops.readdirplus = OnReadDirPlus;
  ops.releasedir = OnReleaseDir;
  ops.getxattr = OnGetXattr;
  ops.listxattr = OnListXattr;
  ops.statfs = OnStatFs;
  ops.setattr = Refuse;
  ops.mknod = Refuse;
  ops.mkdir = Refuse;
  ops.unlink = Refuse;
  ops.rmdir = Refuse;
  ops.symlink = Refuse;
  ops.rename = Refuse;
  ops.link = Refuse;
  ops.create = Refuse;
  ops.write = Refuse;
  ops.setxattr = Refuse;
  ops.removexattr = Refuse;
  ops.fallocate = Refuse;
  return ops;
}

}  // namespace dartfs::fs
