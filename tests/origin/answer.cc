#include "origin/answer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "origin/index.h"

namespace dartfs::origin {
namespace {

std::string_view WithoutWeak(std::string_view etag) {
  return etag.substr(0, 2) == "W/" ? etag.substr(2) : etag;
}

// If-Match and If-None-Match: "*" or a list. Entity tags hold no comma here.
bool EtagListed(std::string_view list, std::string_view etag, bool strong) {
  if (Trim(list) == "*") return true;
  if (etag.empty()) return false;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view item = Trim(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (strong ? item == etag && item.substr(0, 2) != "W/"
               : WithoutWeak(item) == WithoutWeak(etag)) {
      return true;
    }
  }
  return false;
}

struct Validators {
  std::string etag;  // as sent; empty: none
  std::optional<std::time_t> last_modified;
};

Validators ValidatorsOf(const AnswerContext& context, const Object& object) {
  const FiredFaults& faults = context.faults;
  Validators out;
  if (context.behaviour.etag != EtagMode::kNone) out.etag = object.etag;
  if (context.behaviour.last_modified) out.last_modified = object.last_modified;
  if (faults.Has(Fault::kChangingEtag)) out.etag = fmt::format("\"change-{}\"", context.sequence);
  if (faults.Has(Fault::kNoEtag)) out.etag.clear();
  const bool weak = context.behaviour.etag == EtagMode::kWeak || faults.Has(Fault::kWeakEtag);
  if (weak && !out.etag.empty()) out.etag.insert(0, "W/");
  if (faults.Has(Fault::kFreshLastModified)) out.last_modified = context.now;
  if (faults.Has(Fault::kNoLastModified)) out.last_modified.reset();
  return out;
}

// RFC 9110 section 13.2.2, without If-Range. 0: go on.
int CheckConditions(const Request& request, const Validators& validators) {
  const auto date = [&request](const char* name) {
    const std::string* text = request.Find(name);
    return text == nullptr ? std::nullopt : ParseHttpDate(*text);
  };
  if (const std::string* match = request.Find("If-Match")) {
    if (!EtagListed(*match, validators.etag, true)) return 412;
  } else if (const auto since = date("If-Unmodified-Since"); since && validators.last_modified) {
    if (*validators.last_modified > *since) return 412;
  }
  if (const std::string* none = request.Find("If-None-Match")) {
    if (EtagListed(*none, validators.etag, false)) return 304;
  } else if (const auto since = date("If-Modified-Since"); since && validators.last_modified) {
    if (*validators.last_modified <= *since) return 304;
  }
  return 0;
}

bool IfRangeHolds(const Request& request, const Validators& validators) {
  const std::string* value = request.Find("If-Range");
  if (value == nullptr) return true;
  if (const auto date = ParseHttpDate(*value)) return validators.last_modified == date;
  return value->substr(0, 2) != "W/" && *value == validators.etag;
}

Answer WholeAnswer(const Object& object, Headers headers) {
  Answer answer;
  answer.headers = std::move(headers);
  answer.body = object.body;
  answer.range = {0, object.size};
  return answer;
}

Answer UnsatisfiableAnswer(const AnswerContext& context, const Object& object, Headers headers) {
  if (object.size == 0 && context.behaviour.empty_range == EmptyRange::k200) {
    return WholeAnswer(object, std::move(headers));
  }
  Answer answer = TextAnswer(416, "range not satisfiable\n");
  if (object.size != 0 || context.behaviour.empty_range != EmptyRange::k416Bare) {
    answer.headers.emplace_back("Content-Range", fmt::format("bytes */{}", object.size));
  }
  return answer;
}

Answer ObjectAnswer(const AnswerContext& context, Object object) {
  const Request& request = context.request;
  const FiredFaults& faults = context.faults;
  Headers headers;
  if (!ChangeObject(context, object, headers)) {
    return TextAnswer(500, "the object is too large for this fault, or cannot be read\n");
  }
  headers.insert(headers.end(), object.headers.begin(), object.headers.end());
  headers.emplace_back("Content-Type", object.content_type);
  const Validators validators = ValidatorsOf(context, object);
  if (!validators.etag.empty()) headers.emplace_back("ETag", validators.etag);
  if (validators.last_modified) {
    headers.emplace_back("Last-Modified", FormatHttpDate(*validators.last_modified));
  }
  if (context.behaviour.accept_ranges) headers.emplace_back("Accept-Ranges", "bytes");

  if (const int status = CheckConditions(request, validators); status != 0) {
    Answer answer;
    answer.status = status;
    answer.headers = std::move(headers);
    return answer;
  }
  const std::string* range_header = request.Find("Range");
  const bool look = range_header != nullptr && request.method == "GET" &&
                    IfRangeHolds(request, validators) && !faults.Has(Fault::kIgnoreRange);
  const auto spec = look ? ParseRange(*range_header) : std::nullopt;
  if (!spec) return WholeAnswer(object, std::move(headers));
  const auto range = Resolve(*spec, object.size);
  const bool past_end = spec->first && spec->last && *spec->last >= object.size;
  if (!range || (past_end && faults.Has(Fault::kPastEnd416))) {
    return UnsatisfiableAnswer(context, object, std::move(headers));
  }
  Answer answer = WholeAnswer(object, std::move(headers));
  answer.status = 206;
  answer.range = *range;
  answer.headers.emplace_back("Content-Range", ContentRange(*range, object.size));
  SpoilRange(context, *range, object.size, answer);
  return answer;
}

Answer ListingAnswer(Listing listing) {
  Answer answer;
  answer.headers.emplace_back("Content-Type", std::move(listing.content_type));
  answer.SetBody(std::move(listing.body));
  return answer;
}

Answer S3ErrorAnswer(int status, const char* code, const Request& request) {
  Answer answer = ListingAnswer(RenderS3Error(code, request.path));
  answer.status = status;
  return answer;
}

Answer AbsentAnswer(IndexFormat format, const Request& request) {
  if (format == IndexFormat::kS3) return S3ErrorAnswer(404, "NoSuchKey", request);
  return TextAnswer(404, "not found\n");
}

Answer DirectoryAnswer(const AnswerContext& context, IndexFormat format) {
  const Request& request = context.request;
  const bool slash = request.path.back() == '/';
  if (format == IndexFormat::kS3) {
    const bool lists = QueryParameter(request.query, "list-type") == "2" || request.path == "/";
    if (!slash || !lists) return AbsentAnswer(format, request);
    return ListingAnswer(RenderS3(context.content, request.path, request.query));
  }
  if (!slash) {
    Answer answer = TextAnswer(301, "this is a directory\n");
    const std::string query = request.query.empty() ? "" : "?" + request.query;
    answer.headers.emplace_back("Location", request.path + "/" + query);
    return answer;
  }
  if (format == IndexFormat::kNone) return AbsentAnswer(format, request);
  return ListingAnswer(RenderIndex(format, request.path, context.content.List(request.path)));
}

}  // namespace

void Answer::SetBody(std::string text) {
  range = {0, text.size()};
  body = std::make_shared<const std::string>(std::move(text));
}

Answer TextAnswer(int status, std::string text) {
  Answer answer;
  answer.status = status;
  answer.headers.emplace_back("Content-Type", "text/plain");
  answer.SetBody(std::move(text));
  return answer;
}

Answer MakeAnswer(const AnswerContext& context) {
  if (auto answer = RefuseOrRedirect(context)) return std::move(*answer);
  const Request& request = context.request;
  if (request.method != "GET" && request.method != "HEAD") {
    Answer answer = TextAnswer(405, "GET and HEAD only\n");
    answer.headers.emplace_back("Allow", "GET, HEAD");
    return answer;
  }
  SwapContent(context);
  IndexFormat format = context.behaviour.index;
  if (const auto name = QueryParameter(request.query, "index")) ParseName(*name, format);
  Found found = context.content.Find(request.path);
  switch (found.kind) {
    case FileKind::kObject:
      return ObjectAnswer(context, std::move(found.object));
    case FileKind::kDirectory:
      return DirectoryAnswer(context, format);
    case FileKind::kAbsent:
      break;
  }
  return AbsentAnswer(format, request);
}

bool ReadBody(const Body& body, ByteRange range, std::string& out) {
  out.resize(range.size());
  if (const auto* memory = std::get_if<Memory>(&body)) {
    out.assign(**memory, range.begin, range.size());
    return out.size() == range.size();
  }
  if (const auto* generated = std::get_if<Generated>(&body)) {
    GenerateBytes(generated->seed, range.begin, out.data(), out.size());
    return true;
  }
  const int fd = std::get<File>(body)->fd();
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t n =
        pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(range.begin + done));
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

std::string ContentRange(ByteRange range, std::uint64_t size) {
  return fmt::format("bytes {}-{}/{}", range.begin, range.end - 1, size);
}

void SetHeader(Headers& headers, std::string_view name, std::string value) {
  RemoveHeader(headers, name);
  headers.emplace_back(name, std::move(value));
}

void RemoveHeader(Headers& headers, std::string_view name) {
  headers.erase(
      std::remove_if(headers.begin(), headers.end(),
                     [name](const auto& header) { return EqualsNoCase(header.first, name); }),
      headers.end());
}

}  // namespace dartfs::origin
