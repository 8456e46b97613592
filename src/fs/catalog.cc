#include "fs/catalog.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>

#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/base/unique_fd.h"
#include "fs/catalog_parse.h"

namespace dartfs::fs {

using core::Code;
using core::EscapeForeign;
using core::MakeError;
using core::Result;
using core::Status;

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kSha256Bytes = 32;

// Order of a tree: '/' comes before every byte that a name can have.
bool ComesBefore(std::string_view a, std::string_view b) {
  const size_t common = std::min(a.size(), b.size());
  for (size_t i = 0; i < common; ++i) {
    if (a[i] == b[i]) continue;
    if (a[i] == '/' || b[i] == '/') return a[i] == '/';
    return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[i]);
  }
  return a.size() < b.size();
}

std::string_view ComponentAt(std::string_view path, size_t begin) {
  return path.substr(begin, path.find('/', begin) - begin);
}

Result<std::string> ReadRegularFile(const std::string& path, int64_t& mtime) {
  const std::string shown = "catalogue " + EscapeForeign(path);
  // Not to wait for the other end of a pipe.
  const core::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return core::ErrnoError(errno, shown);
  struct stat stat {};
  if (fstat(fd.get(), &stat) != 0) return core::ErrnoError(errno, shown);
  if (!S_ISREG(stat.st_mode)) {
    return MakeError(Code::kInvalidArgument, shown + " is not a regular file");
  }
  mtime = stat.st_mtim.tv_sec;
  std::string text(std::min<size_t>(static_cast<size_t>(stat.st_size), kMaxCatalogBytes) + 1, '\0');
  size_t held = 0;
  while (held < text.size()) {
    const ssize_t got = read(fd.get(), text.data() + held, text.size() - held);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return core::ErrnoError(errno, shown);
    if (got == 0) break;
    held += static_cast<size_t>(got);
    if (held == text.size() && held <= kMaxCatalogBytes) text.resize(held * 2);
  }
  if (held > kMaxCatalogBytes) {
    return MakeError(Code::kTooLarge, shown + " is larger than " +
                                          core::FormatSize(kMaxCatalogBytes) +
                                          "; split it over several mounts");
  }
  text.resize(held);
  return text;
}

}  // namespace

// Lines to a tree: all lines sorted by path, then level by level, so that the children of a
// directory stand together.
class CatalogBuilder {
 public:
  CatalogBuilder(std::string_view file, int64_t mtime)
      : catalog_(new Catalog()), file_(EscapeForeign(file)) {
    catalog_->file_ = file;
    catalog_->mtime_ = mtime;
  }

  Result<std::shared_ptr<const Catalog>> Build(std::string_view text) {
    TRY(ReadLines(text));
    catalog_->files_ = lines_.size();
    std::sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) {
      return a.path == b.path ? a.number < b.number : ComesBefore(a.path, b.path);
    });
    Reserve();
    Catalog::Entry root;
    root.is_dir = true;
    catalog_->entries_.push_back(root);
    todo_.push_back({Catalog::kRoot, 0, lines_.size(), 0});
    for (size_t next = 0; next < todo_.size(); ++next) TRY(BuildDir(todo_[next]));
    return std::shared_ptr<const Catalog>(std::move(catalog_));
  }

 private:
  struct Line {
    std::string_view path, url, digest;  // as in CatalogLine
    uint64_t size = Catalog::kNoSize;
    uint32_t number = 0;
  };
  // A directory whose children are lines [first, last), all alike in their first `depth` bytes.
  struct Todo {
    Catalog::Id id;
    size_t first, last, depth;
  };

  core::Error At(uint32_t line, const std::string& what) const {
    return MakeError(Code::kInvalidArgument, file_ + ":" + std::to_string(line) + ": " + what);
  }

  Status ReadLines(std::string_view text) {
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    lines_.reserve(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1);
    for (uint32_t number = 1; !text.empty(); ++number) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      TRY(ReadLine(line, number));
    }
    return {};
  }

  Status ReadLine(std::string_view line, uint32_t number) {
    if (line.size() > kMaxCatalogLineBytes) {
      return At(number, "the line has " + std::to_string(line.size()) + " bytes; at most " +
                            std::to_string(kMaxCatalogLineBytes) + " are taken");
    }
    auto parsed = ParseCatalogLine(line);
    if (!parsed) return At(number, parsed.error().context);
    if (!*parsed) return {};
    if (lines_.size() >= kMaxCatalogEntries) return TooMany(number);
    CatalogLine& fields = **parsed;
    if (!fields.unescaped.empty()) {
      fields.path = unescaped_.emplace_back(std::move(fields.unescaped));
    }
    lines_.push_back(
        {fields.path, fields.url, fields.digest, fields.size.value_or(Catalog::kNoSize), number});
    return {};
  }

  // For the files, and a name of 16 bytes for a directory of every eight: not to be copied while it
  // grows, nor to hold much that stays empty.
  void Reserve() {
    size_t text = 0;
    for (const Line& line : lines_) {
      text += line.path.size() - (line.path.rfind('/') + 1) + line.url.size();
      text += line.digest.size() / 2;
    }
    const size_t dirs = lines_.size() / 8 + 1;
    catalog_->entries_.reserve(lines_.size() + dirs);
    catalog_->text_.reserve(text + dirs * 16);
  }

  core::Error TooMany(uint32_t line) const {
    return At(line, "more than " + std::to_string(kMaxCatalogEntries) +
                        " files and directories; split the catalogue over several mounts");
  }

  Status BuildDir(const Todo todo) {
    const auto first_child = static_cast<Catalog::Id>(catalog_->entries_.size());
    for (size_t i = todo.first; i < todo.last;) {
      const std::string_view name = ComponentAt(lines_[i].path, todo.depth);
      size_t end = i + 1;
      while (end < todo.last && ComponentAt(lines_[end].path, todo.depth) == name) ++end;
      if (catalog_->entries_.size() > kMaxCatalogEntries) return TooMany(lines_[i].number);
      TRY(AddChild(todo, i, end, name));
      i = end;
    }
    Catalog::Entry& dir = catalog_->entries_[todo.id];
    dir.first_child = first_child;
    dir.children = static_cast<uint32_t>(catalog_->entries_.size()) - first_child;
    return {};
  }

  // The child that lines [first, last) have in common.
  Status AddChild(const Todo& todo, size_t first, size_t last, std::string_view name) {
    const Line& line = lines_[first];
    const bool is_file = line.path.size() == todo.depth + name.size();
    if (is_file && last - first > 1) return Clash(line, lines_[first + 1]);
    Catalog::Entry entry;
    entry.text = catalog_->text_.size();
    entry.line = line.number;
    entry.name_bytes = static_cast<uint8_t>(name.size());
    entry.is_dir = !is_file;
    catalog_->text_ += name;
    if (is_file) {
      entry.size = line.size;
      entry.url_bytes = static_cast<uint16_t>(line.url.size());
      const std::string digest = RawDigest(line.digest);
      entry.digest_bytes = static_cast<uint8_t>(digest.size());
      catalog_->text_ += line.url;
      catalog_->text_ += digest;
    } else {
      todo_.push_back({static_cast<Catalog::Id>(catalog_->entries_.size()), first, last,
                       todo.depth + name.size() + 1});
    }
    catalog_->entries_.push_back(entry);
    return {};
  }

  core::Error Clash(const Line& file, const Line& other) const {
    if (file.path == other.path) {
      return At(other.number, "'" + EscapeForeign(other.path) + "' stands in line " +
                                  std::to_string(file.number) +
                                  " already; a path may be there once");
    }
    return At(other.number, "'" + EscapeForeign(other.path) + "' lies below '" +
                                EscapeForeign(file.path) + "', which is a file in line " +
                                std::to_string(file.number) + "; give one of them another path");
  }

  std::shared_ptr<Catalog> catalog_;
  const std::string file_;
  std::deque<std::string> unescaped_;
  std::vector<Line> lines_;
  std::vector<Todo> todo_;
};

Result<std::shared_ptr<const Catalog>> Catalog::Parse(std::string_view text, std::string_view file,
                                                      int64_t mtime) {
  return CatalogBuilder(file, mtime).Build(text);
}

Result<std::shared_ptr<const Catalog>> Catalog::Load(const std::string& path) {
  int64_t mtime = 0;
  TRY_ASSIGN(const std::string text, ReadRegularFile(path, mtime));
  return Parse(text, path, mtime);
}

std::optional<Catalog::Id> Catalog::FindDir(std::string_view path) const {
  Id dir = kRoot;
  while (!path.empty()) {
    const size_t end = path.find('/');
    if (end == std::string_view::npos) return std::nullopt;
    const auto child = Find(dir, path.substr(0, end));
    if (!child || !IsDir(*child)) return std::nullopt;
    dir = *child;
    path.remove_prefix(end + 1);
  }
  return dir;
}

std::optional<Catalog::Id> Catalog::Find(Id dir, std::string_view name) const {
  const auto [first, last] = ChildrenOf(dir);
  const auto begin = entries_.begin();
  const auto end = begin + last;
  const auto it = std::lower_bound(
      begin + first, end, name, [this](const Entry& entry, std::string_view wanted) {
        return std::string_view(text_).substr(entry.text, entry.name_bytes) < wanted;
      });
  const auto id = static_cast<Id>(it - begin);
  if (it == end || NameOf(id) != name) return std::nullopt;
  return id;
}

Catalog::Range Catalog::ChildrenOf(Id dir) const {
  const Entry& entry = entries_[dir];
  return {entry.first_child, entry.first_child + entry.children};
}

std::string_view Catalog::NameOf(Id id) const {
  const Entry& entry = entries_[id];
  return std::string_view(text_).substr(entry.text, entry.name_bytes);
}

std::string_view Catalog::UrlOf(Id id) const {
  const Entry& entry = entries_[id];
  return std::string_view(text_).substr(entry.text + entry.name_bytes, entry.url_bytes);
}

std::optional<uint64_t> Catalog::SizeOf(Id id) const {
  const uint64_t size = entries_[id].size;
  return size == kNoSize ? std::nullopt : std::optional(size);
}

std::string Catalog::DigestOf(Id id) const {
  const Entry& entry = entries_[id];
  if (entry.digest_bytes == 0) return "";
  const auto raw = std::string_view(text_).substr(entry.text + entry.name_bytes + entry.url_bytes,
                                                  entry.digest_bytes);
  const char* const algorithm = entry.digest_bytes == kSha256Bytes ? "sha256:" : "sha512:";
  return algorithm + core::HexEncode(core::AsBytes(raw));
}

size_t Catalog::memory_bytes() const {
  return sizeof *this + entries_.capacity() * sizeof(Entry) + text_.capacity();
}

}  // namespace dartfs::fs
