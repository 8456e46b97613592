#include "httpd/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <utility>

#include "core/base/text.h"

namespace dartfs::httpd {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using core::EqualsIgnoreCase;
using BeastView = boost::beast::string_view;

std::string Text(BeastView view) { return {view.data(), view.size()}; }

// What a head says of its own framing; the rest is in the request.
struct Framing {
  bool connection = false;  // there is such a field
  bool expect = false;
  size_t hosts = 0;
  size_t lengths = 0;
  size_t codings = 0;
  std::string length;  // the last
  std::string coding;
};

// Takes the head apart into `request`.
class HeadReader final : public http::basic_parser<true> {
 public:
  HeadReader(Request& request, Framing& framing) : request_(request), framing_(framing) {}

 private:
  void on_request_impl(http::verb, BeastView method, BeastView target, int version,
                       error_code&) override {
    constexpr size_t kUsualFields = 8;
    request_.method = Text(method);
    request_.target = Text(target);
    request_.minor_version = version % 10;
    request_.headers.reserve(kUsualFields);
  }
  void on_field_impl(http::field field, BeastView name, BeastView value, error_code&) override {
    request_.headers.push_back({Text(name), Text(value)});
    if (field == http::field::host) ++framing_.hosts;
    if (field == http::field::connection) framing_.connection = true;
    if (field == http::field::expect) framing_.expect = true;
    if (field == http::field::content_length) {
      ++framing_.lengths;
      framing_.length = request_.headers.back().value;
    }
    if (field == http::field::transfer_encoding) {
      ++framing_.codings;
      framing_.coding = request_.headers.back().value;
    }
  }
  void on_response_impl(int, BeastView, int, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(boost::optional<uint64_t> const&, error_code&) override {}
  size_t on_body_impl(BeastView, error_code&) override { return 0; }
  void on_chunk_header_impl(uint64_t, BeastView, error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, BeastView, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}

  Request& request_;
  Framing& framing_;
};

// Behind the line's LF that ends the head; npos: it has not come yet. `from`: where the search goes
// on. A head whose lines end in LF alone ends too, and is refused then.
size_t EndOfHead(std::string_view head, size_t from) {
  for (size_t at = head.find('\n', from); at != std::string_view::npos;
       at = head.find('\n', at + 1)) {
    if (head.substr(at + 1).starts_with('\n')) return at + 2;
    if (head.substr(at + 1).starts_with("\r\n")) return at + 3;
  }
  return std::string_view::npos;
}

// Lines end in CRLF, and none goes on in the next (obs-fold): else two readers may differ.
bool HasOddLines(std::string_view head) {
  for (size_t at = head.find('\n'); at != std::string_view::npos; at = head.find('\n', at + 1)) {
    if (at == 0 || head[at - 1] != '\r') return true;
    if (at + 1 < head.size() && (head[at + 1] == ' ' || head[at + 1] == '\t')) return true;
  }
  return head.find('\0') != std::string_view::npos;
}

// As a request line has them.
bool HasThreeWords(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\r'));
  return std::count(line.begin(), line.end(), ' ') == 2;
}

// Whether a head that begins so may still become one: a method (a token, RFC 9110 section 5.6.2),
// then a space. What is another protocol is told at its first bytes.
bool MayBeRequest(std::string_view head) {
  constexpr size_t kLongestMethod = 32;
  static constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  const size_t space = head.find(' ');
  const std::string_view method = head.substr(0, std::min(space, kLongestMethod + 1));
  if (method.size() > kLongestMethod) return false;
  return std::all_of(method.begin(), method.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool IsVisible(std::string_view target) {
  return std::all_of(target.begin(), target.end(), [](char c) { return c >= 0x21 && c <= 0x7E; });
}

// Whether a list field has that member.
bool Lists(const std::optional<std::string>& field, std::string_view member) {
  if (!field) return false;
  const auto members = core::Split(*field, ',');
  return std::any_of(members.begin(), members.end(), [member](std::string_view each) {
    return EqualsIgnoreCase(core::TrimAscii(each), member);
  });
}

std::optional<BadRequest> CheckHost(const Request& request, size_t hosts) {
  if (hosts > 1) return BadRequest{400, "more than one Host"};
  if (hosts == 0 && request.minor_version > 0) return BadRequest{400, "no Host"};
  return std::nullopt;
}

// How long the body is: a number, or chunked, never both (RFC 9112 section 6.3).
std::optional<BadRequest> ReadFraming(const Framing& framing, Request* request) {
  if (framing.codings > 0) {
    if (framing.lengths > 0) return BadRequest{400, "Content-Length beside Transfer-Encoding"};
    if (request->minor_version == 0) return BadRequest{400, "Transfer-Encoding in HTTP/1.0"};
    if (framing.codings > 1 || !EqualsIgnoreCase(framing.coding, "chunked")) {
      return BadRequest{501, "a Transfer-Encoding other than chunked"};
    }
    request->chunked = true;
    return std::nullopt;
  }
  if (framing.lengths == 0) return std::nullopt;
  if (framing.lengths > 1) return BadRequest{400, "more than one Content-Length"};
  const auto length = core::ParseUint(framing.length);
  if (!length) return BadRequest{400, "a Content-Length that is no number"};
  request->content_length = *length;
  return std::nullopt;
}

void ReadConnection(const Framing& framing, Request* request) {
  const bool persists = request->minor_version > 0;
  request->keep_alive = persists;
  if (framing.connection) {
    const auto connection = request->Find("Connection");
    request->keep_alive = persists ? !Lists(connection, "close") : Lists(connection, "keep-alive");
  }
  request->expects_continue =
      persists && framing.expect && Lists(request->Find("Expect"), "100-continue");
}

}  // namespace

std::optional<std::string> Request::Find(std::string_view name) const {
  std::optional<std::string> found;
  for (const auto& header : headers) {
    if (header.name.size() != name.size() || !EqualsIgnoreCase(header.name, name)) continue;
    found = found ? *found + ", " + header.value : header.value;
  }
  return found;
}

size_t RequestParser::Feed(std::string_view bytes) {
  if (state_ != State::kMore) return 0;
  size_t taken = 0;
  while (!started() && taken < bytes.size() && (bytes[taken] == '\r' || bytes[taken] == '\n')) {
    ++taken;
  }
  bytes.remove_prefix(taken);
  const size_t before = head_.size();
  const size_t room = limits_.head_bytes - before;
  head_.append(bytes.substr(0, room));
  // The end may have begun with the last bytes that came before.
  const size_t end = EndOfHead(head_, before - std::min<size_t>(before, 2));
  const size_t line = head_.find('\n');
  if (std::min(line, head_.size()) > limits_.line_bytes) {
    Fail(414, fmt::format("a request line of more than {} bytes", limits_.line_bytes));
  } else if (!MayBeRequest(head_)) {
    Fail(400, "not an HTTP request");
  } else if (end == std::string::npos && head_.size() >= limits_.head_bytes) {
    Fail(431, fmt::format("a head of more than {} bytes", limits_.head_bytes));
  }
  if (state_ == State::kBad || end == std::string::npos) return taken + head_.size() - before;
  head_.resize(end);
  Parse();
  return taken + end - before;
}

Request RequestParser::Take() {
  head_.clear();
  state_ = State::kMore;
  Request taken(std::move(request_));
  request_ = Request();
  return taken;
}

void RequestParser::Fail(int status, std::string why) {
  state_ = State::kBad;
  bad_ = {status, std::move(why)};
}

void RequestParser::FailVersion() { Fail(505, "an HTTP version other than 1.0 and 1.1"); }

void RequestParser::Parse() {
  if (HasOddLines(head_))
    return Fail(400, "a line that does not end in CRLF, is folded, or has a NUL");
  Framing framing;
  HeadReader parser(request_, framing);
  parser.header_limit(static_cast<std::uint32_t>(limits_.head_bytes));
  parser.skip(true);  // the body is not for this parser
  error_code error;
  parser.put(boost::asio::const_buffer(head_.data(), head_.size()), error);
  if (error == http::error::bad_version && HasThreeWords(head_)) return FailVersion();
  if (error || !parser.is_header_done()) return Fail(400, "not a request: " + error.message());
  if (request_.headers.size() > limits_.headers) {
    return Fail(431, fmt::format("more than {} header fields", limits_.headers));
  }
  if (!IsVisible(request_.target)) return Fail(400, "a request target with bytes that no URL has");
  if (auto bad = CheckHost(request_, framing.hosts)) return Fail(bad->status, std::move(bad->why));
  if (auto bad = ReadFraming(framing, &request_)) return Fail(bad->status, std::move(bad->why));
  ReadConnection(framing, &request_);
  state_ = State::kDone;
}

}  // namespace dartfs::httpd
