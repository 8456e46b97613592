// Faults that change what is answered. Those that change how it is sent are in script.cc.
#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <chrono>
#include <cstdint>

#include "origin/answer.h"

namespace dartfs::origin {
namespace {

constexpr std::uint64_t kMaxGzip = 64U << 20U;
constexpr char kBoundary[] = "origin-part";

std::uint64_t SteadyMs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

std::string Base64(const std::string& text) {
  std::string out((text.size() + 2) / 3 * 4 + 1, '\0');
  const int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                reinterpret_cast<const unsigned char*>(text.data()),
                                static_cast<int>(text.size()));
  out.resize(static_cast<std::size_t>(n));
  return out;
}

Answer StatusAnswer(const AnswerContext& context, const FaultRule& rule, int fallback) {
  const int status = rule.status != 0 ? rule.status : fallback;
  Answer answer = TextAnswer(status, fmt::format("scripted {}\n", status));
  if (status == 401) answer.headers.emplace_back("WWW-Authenticate", "Basic realm=\"origin\"");
  if (rule.retry_after >= 0) {
    answer.headers.emplace_back("Retry-After", rule.retry_after_date
                                                   ? FormatHttpDate(context.now + rule.retry_after)
                                                   : std::to_string(rule.retry_after));
  }
  return answer;
}

Answer RedirectAnswer(const FaultRule& rule, std::string location) {
  Answer answer = TextAnswer(rule.status != 0 ? rule.status : 302, "elsewhere\n");
  answer.headers.emplace_back("Location", std::move(location));
  return answer;
}

std::optional<std::uint64_t> HopOf(const Request& request) {
  const auto text = QueryParameter(request.query, "_hop");
  return text ? ParseNumber(*text) : std::nullopt;
}

// The same path and query with the next _hop.
std::string NextHop(const FaultRule& rule, const Request& request, std::uint64_t hop) {
  std::string query = request.query;
  if (const std::size_t at = query.find("_hop="); at != std::string::npos) query.resize(at);
  return Expand(rule.target, request, hop) + request.path + "?" + query +
         (query.empty() || query.back() == '&' ? "" : "&") + fmt::format("_hop={}", hop);
}

// The signature is "<sequence>.<end of life>", so that any origin of this machine can check it.
std::optional<Answer> SignedRedirect(const AnswerContext& context, const FaultRule& rule) {
  const Request& request = context.request;
  if (const auto signature = QueryParameter(request.query, "X-Amz-Signature")) {
    const std::size_t dot = signature->find('.');
    const auto end = dot == std::string::npos
                         ? std::nullopt
                         : ParseNumber(std::string_view(*signature).substr(dot + 1));
    if (end && (*end == 0 || SteadyMs() < *end)) return std::nullopt;
    return TextAnswer(403, "the signature has expired\n");
  }
  const std::uint64_t end = rule.delay_ms == 0 ? 0 : SteadyMs() + rule.delay_ms;
  const std::string location = fmt::format(
      "{}{}?{}{}X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=origin&X-Amz-Expires={}"
      "&X-Amz-Signature={}.{}",
      Expand(rule.target, request, 0), request.path, request.query,
      request.query.empty() ? "" : "&", (rule.delay_ms + 999) / 1000, context.sequence, end);
  return RedirectAnswer(rule, location);
}

std::optional<Answer> Redirect(const AnswerContext& context) {
  const Request& request = context.request;
  const FiredFaults& faults = context.faults;
  const auto hop = HopOf(request);
  if (const FaultRule* rule = faults.Find(Fault::kRedirect); rule != nullptr && !hop) {
    return RedirectAnswer(*rule, Expand(rule->target, request, 1));
  }
  if (const FaultRule* rule = faults.Find(Fault::kRedirectLoop)) {
    return RedirectAnswer(*rule, NextHop(*rule, request, hop.value_or(0) + 1));
  }
  if (const FaultRule* rule = faults.Find(Fault::kRedirectChain)) {
    if (hop.value_or(0) < rule->count.value_or(1)) {
      return RedirectAnswer(*rule, NextHop(*rule, request, hop.value_or(0) + 1));
    }
  }
  if (const FaultRule* rule = faults.Find(Fault::kRedirectSigned)) {
    return SignedRedirect(context, *rule);
  }
  return std::nullopt;
}

std::uint32_t Crc32(std::string_view text) {
  std::uint32_t crc = ~0U;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ (0xedb88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

void AppendLittleEndian(std::string& out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

// RFC 1952 around stored blocks of RFC 1951 section 3.2.4.
std::string Gzip(std::string_view text) {
  constexpr std::size_t kMaxBlock = 65535;
  std::string out("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  std::string_view rest = text;
  do {
    const std::string_view block = rest.substr(0, kMaxBlock);
    rest.remove_prefix(block.size());
    out += rest.empty() ? '\1' : '\0';
    const auto size = static_cast<std::uint32_t>(block.size());
    AppendLittleEndian(out, size, 2);
    AppendLittleEndian(out, ~size, 2);
    out += block;
  } while (!rest.empty());
  AppendLittleEndian(out, Crc32(text), 4);
  AppendLittleEndian(out, static_cast<std::uint32_t>(text.size()), 4);
  return out;
}

// Another range of the same length where there is one, else the same range without its first byte.
ByteRange Displaced(ByteRange asked, std::uint64_t size, std::int64_t shift) {
  const std::uint64_t by = static_cast<std::uint64_t>(shift < 0 ? -shift : shift);
  const bool up_fits = by <= size - asked.end;
  const bool down_fits = by <= asked.begin;
  if (up_fits && (shift >= 0 || !down_fits)) return {asked.begin + by, asked.end + by};
  if (down_fits) return {asked.begin - by, asked.end - by};
  return asked.size() > 1 ? ByteRange{asked.begin + 1, asked.end} : asked;
}

// A range without its last `count` bytes, but never empty.
ByteRange Shortened(ByteRange asked, std::uint64_t count) {
  return {asked.begin, asked.end - std::min(count, asked.size() - 1)};
}

void MakeMultipart(ByteRange asked, std::uint64_t size, Answer& answer) {
  answer.prefix =
      fmt::format("--{}\r\nContent-Type: application/octet-stream\r\nContent-Range: {}\r\n\r\n",
                  kBoundary, ContentRange(asked, size));
  answer.suffix = fmt::format("\r\n--{}--\r\n", kBoundary);
  RemoveHeader(answer.headers, "Content-Range");
  SetHeader(answer.headers, "Content-Type",
            fmt::format("multipart/byteranges; boundary={}", kBoundary));
}

}  // namespace

std::optional<Answer> RefuseOrRedirect(const AnswerContext& context) {
  const Request& request = context.request;
  const FiredFaults& faults = context.faults;
  if (const FaultRule* rule = faults.Find(Fault::kStatus)) {
    return StatusAnswer(context, *rule, 503);
  }
  if (const FaultRule* rule = faults.Find(Fault::kHeadRefused)) {
    if (request.method == "HEAD") return StatusAnswer(context, *rule, 403);
  }
  if (const FaultRule* rule = faults.Find(Fault::kGetOnly)) {
    if (request.method != "GET") return StatusAnswer(context, *rule, 403);
  }
  if (const FaultRule* rule = faults.Find(Fault::kAuth)) {
    const std::string* given = request.Find("Authorization");
    if (given == nullptr || *given != "Basic " + Base64(rule->credential)) {
      return StatusAnswer(context, *rule, 401);
    }
  }
  return Redirect(context);
}

void SwapContent(const AnswerContext& context) {
  const FaultRule* rule = context.faults.Find(Fault::kSwap);
  if (rule == nullptr) return;
  std::string target = rule->target;
  if (target.empty()) {
    // /_gen/<size>/<seed>/<name>
    const std::string& path = context.request.path;
    const std::size_t begin = path.find('/', 6) + 1;
    const std::size_t end = path.find('/', begin);
    if (path.compare(0, 6, "/_gen/") != 0 || end == std::string::npos) return;
    const auto seed = ParseNumber(std::string_view(path).substr(begin, end - begin));
    if (!seed) return;
    target = path.substr(0, begin) + std::to_string(*seed + 1) + path.substr(end);
  }
  context.content.Alias(context.request.path, target);
}

bool ChangeObject(const AnswerContext& context, Object& object, Headers& headers) {
  const bool gzip = context.faults.Has(Fault::kGzip);
  if (gzip) {
    std::string bytes;
    if (object.size > kMaxGzip || !ReadBody(object.body, {0, object.size}, bytes)) return false;
    bytes = Gzip(bytes);
    object.size = bytes.size();
    object.body = std::make_shared<const std::string>(std::move(bytes));
  }
  if (gzip || context.faults.Has(Fault::kGzipLabel)) {
    headers.emplace_back("Content-Encoding", "gzip");
  }
  return true;
}

void SpoilRange(const AnswerContext& context, ByteRange asked, std::uint64_t size, Answer& answer) {
  const FiredFaults& faults = context.faults;
  const auto content_range = [&answer](std::string value) {
    SetHeader(answer.headers, "Content-Range", std::move(value));
  };
  if (const FaultRule* rule = faults.Find(Fault::kWrongRange)) {
    answer.range = Displaced(asked, size, rule->shift);
    content_range(ContentRange(answer.range, size));
  }
  if (const FaultRule* rule = faults.Find(Fault::kTruncatedRange)) {
    answer.range = Shortened(asked, rule->count.value_or(1));
    content_range(ContentRange(answer.range, size));
  }
  if (const FaultRule* rule = faults.Find(Fault::kShortRange)) {
    answer.range = Shortened(asked, rule->count.value_or(1));
  }
  if (faults.Has(Fault::kUnknownTotal)) {
    content_range(fmt::format("bytes {}-{}/*", answer.range.begin, answer.range.end - 1));
  }
  if (const FaultRule* rule = faults.Find(Fault::kWrongTotal)) {
    content_range(ContentRange(answer.range, size + static_cast<std::uint64_t>(rule->shift)));
  }
  if (faults.Has(Fault::kZeroRange)) {
    answer.range = {0, 1};
    content_range("bytes 0-0/*");
  }
  if (faults.Has(Fault::kRangeOn200)) answer.status = 200;
  if (faults.Has(Fault::kNoContentRange)) RemoveHeader(answer.headers, "Content-Range");
  if (faults.Has(Fault::kMultipart)) MakeMultipart(answer.range, size, answer);
}

}  // namespace dartfs::origin
