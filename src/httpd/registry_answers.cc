#include "httpd/registry_answers.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "httpd/json_fields.h"

namespace dartfs::httpd {
namespace {

const char* CodeOf(int status, RegistryRoute route) {
  switch (status) {
    case 401:
      return "UNAUTHORIZED";
    case 403:
      return "DENIED";
    case 404:
    case 410:
      if (route == RegistryRoute::kBlob) return "BLOB_UNKNOWN";
      return route == RegistryRoute::kManifest ? "MANIFEST_UNKNOWN" : "NAME_UNKNOWN";
    case 429:
      return "TOOMANYREQUESTS";
    default:
      return "UNKNOWN";
  }
}

// Makes `answer` one of JSON, whatever it was.
void SetJson(TextAnswer& answer, std::string_view code, std::string_view message) {
  answer.text =
      R"({"errors":[{"code":)" + JsonQuote(code) + R"(,"message":)" + JsonQuote(message) + "}]}\n";
  answer.head.Remove("Content-Type");
  answer.head.Add("Content-Type", "application/json");
  answer.head.Add("Docker-Distribution-Api-Version", "registry/2.0");
  answer.head.framing = Framing::kLength;
  answer.head.content_length = answer.text.size();
}

}  // namespace

TextAnswer RegistryFaultAnswer(int status, std::string_view code, std::string_view message) {
  TextAnswer answer;
  answer.head.status = status;
  answer.head.Add("X-Content-Type-Options", "nosniff");
  SetJson(answer, code, message);
  return answer;
}

TextAnswer RegistryErrorAnswer(const core::Error& error, RegistryRoute route) {
  TextAnswer answer = ErrorAnswer(error);
  SetJson(answer, CodeOf(answer.head.status, route), error.context);
  return answer;
}

TextAnswer RegistryReadOnlyAnswer() {
  TextAnswer answer = RegistryFaultAnswer(405, "UNSUPPORTED", "this mirror is read-only");
  answer.head.Add("Allow", "GET, HEAD");
  return answer;
}

void RespondWith(ExchangePtr exchange, TextAnswer answer) {
  exchange->Respond(std::move(answer.head), MakeTextBody(std::move(answer.text)));
}

}  // namespace dartfs::httpd
