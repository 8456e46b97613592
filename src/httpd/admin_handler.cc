#include "httpd/admin_handler.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "httpd/admin_page.h"
#include "httpd/metrics.h"

namespace dartfs::httpd {
namespace {

constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";
constexpr size_t kMostMembers = 1024;
constexpr const char* kNoCluster = R"({"error": "no cluster is configured"})"
                                   "\n";

// Foreign text is in these answers: a browser must take nothing of it for a script, nor let another
// page frame it.
constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

struct PageFile {
  std::string_view path;
  const char* type;
  const std::string_view* text;
};

const PageFile* FindFile(std::string_view path) {
  constexpr const char* kScript = "text/javascript; charset=utf-8";
  static constexpr std::array<PageFile, 6> kFiles = {{
      {"/admin/", "text/html; charset=utf-8", &kAdminPageHtml},
      {"/admin/page.css", "text/css; charset=utf-8", &kAdminPageCss},
      {"/admin/page.js", kScript, &kAdminPageJs},
      {"/admin/format.js", kScript, &kAdminFormatJs},
      {"/admin/elements.js", kScript, &kAdminElementsJs},
      {"/admin/charts.js", kScript, &kAdminChartsJs},
  }};
  const auto* const found = std::find_if(kFiles.begin(), kFiles.end(),
                                         [&](const PageFile& file) { return file.path == path; });
  return found == kFiles.end() ? nullptr : found;
}

ResponseHead HeadOf(int status, std::string_view type) {
  ResponseHead head;
  head.status = status;
  head.Add("Content-Type", type);
  head.Add("Cache-Control", "no-store");
  head.Add("X-Content-Type-Options", "nosniff");
  head.Add("Content-Security-Policy", kContentPolicy);
  head.Add("Referrer-Policy", "no-referrer");
  return head;
}

void Respond(Exchange& exchange, ResponseHead head, std::string text) {
  head.content_length = text.size();
  exchange.Respond(std::move(head), MakeTextBody(std::move(text)));
}

void Respond(Exchange& exchange, int status, std::string_view type, std::string_view text) {
  Respond(exchange, HeadOf(status, type), std::string(text));
}

void RespondUnavailable(Exchange& exchange, std::string_view type, std::string_view text) {
  ResponseHead head = HeadOf(503, type);
  head.Add("Retry-After", "1");
  Respond(exchange, std::move(head), std::string(text));
}

// The last of that name; nullopt: there is none.
std::optional<std::string_view> Parameter(std::string_view query, std::string_view name) {
  std::optional<std::string_view> found;
  for (const std::string_view part : core::Split(query, '&')) {
    const size_t equals = part.find('=');
    if (part.substr(0, equals) != name) continue;
    found = equals == std::string_view::npos ? "" : part.substr(equals + 1);
  }
  return found;
}

std::optional<RingQuestion> ParseRing(std::string_view query) {
  RingQuestion question;
  const auto key = core::ParseUint(Parameter(query, "key").value_or(""));
  if (!key) return std::nullopt;
  question.key = *key;
  if (const auto text = Parameter(query, "n")) {
    const auto most = core::ParseUint(*text);
    if (!most || *most == 0 || *most > kMostMembers) return std::nullopt;
    question.most = static_cast<size_t>(*most);
  }
  return question;
}

// A place among those that wait; gives it back.
class Place {
 public:
  explicit Place(std::shared_ptr<std::atomic<size_t>> waiting) : waiting_(std::move(waiting)) {}
  Place(Place&&) = default;
  Place& operator=(Place&&) = delete;
  ~Place() {
    if (waiting_ != nullptr) waiting_->fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::shared_ptr<std::atomic<size_t>> waiting_;
};

}  // namespace

AdminHandler::AdminHandler(AdminSources sources, core::Scheduler& scheduler)
    : sources_(std::move(sources)), scheduler_(scheduler) {}

void AdminHandler::Handle(ExchangePtr exchange) {
  const std::string_view target = exchange->request().target;
  const size_t mark = target.find('?');
  const std::string_view path = target.substr(0, mark);
  if (path == "/healthz") return Respond(*exchange, 200, kText, "ok\n");
  if (path == "/readyz") return Ready(std::move(exchange));
  if (path == "/metrics") {
    return Produce(std::move(exchange), kMetricsType, sources_.metrics);
  }
  if (path == "/admin/stats") return Produce(std::move(exchange), kJson, sources_.stats);
  if (path == "/admin/members") return Produce(std::move(exchange), kJson, sources_.members);
  if (path == "/admin/ring") {
    const bool asks = mark != std::string_view::npos;
    return Ring(std::move(exchange), asks ? target.substr(mark + 1) : "");
  }
  if (const PageFile* file = FindFile(path)) {
    return Respond(*exchange, 200, file->type, *file->text);
  }
  if (path == "/admin") {
    ResponseHead head = HeadOf(308, kText);
    head.Add("Location", "/admin/");
    return Respond(*exchange, std::move(head), "the page is at /admin/\n");
  }
  Respond(*exchange, 404, kText, "there is no such page here; the overview is at /admin/\n");
}

void AdminHandler::Ready(ExchangePtr exchange) const {
  const std::string reason = sources_.not_ready ? sources_.not_ready() : "";
  if (reason.empty()) return Respond(*exchange, 200, kText, "ready\n");
  RespondUnavailable(*exchange, kText, "not ready: " + core::EscapeForeign(reason) + "\n");
}

void AdminHandler::Ring(ExchangePtr exchange, std::string_view query) {
  if (!sources_.ring) return RespondUnavailable(*exchange, kJson, kNoCluster);
  const auto question = ParseRing(query);
  if (!question) {
    return Respond(
        *exchange, 400, kJson,
        R"({"error": "this needs key=<a number of 64 bits>, and may have n=<1 to 1024>"})"
        "\n");
  }
  Produce(std::move(exchange), kJson,
          [&ring = sources_.ring, question = *question] { return ring(question); });
}

void AdminHandler::Produce(ExchangePtr exchange, std::string_view type, Source source) {
  if (!source) {
    const bool cluster = exchange->request().target.starts_with("/admin/members");
    return RespondUnavailable(*exchange, kJson,
                              cluster ? kNoCluster : R"({"error": "there is nothing of it here"})");
  }
  if (waiting_->fetch_add(1, std::memory_order_relaxed) >= kMostWaiting) {
    waiting_->fetch_sub(1, std::memory_order_relaxed);
    return RespondUnavailable(*exchange, kText, "too many ask for this at once\n");
  }
  scheduler_.Post(
      [exchange = std::move(exchange), type, source = std::move(source), place = Place(waiting_)] {
        if (exchange->gone()) return;
        Respond(*exchange, 200, type, source());
      });
}

}  // namespace dartfs::httpd
