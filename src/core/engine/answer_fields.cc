#include "core/engine/answer_fields.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/text.h"

namespace dartfs::core {

namespace {

constexpr std::array<std::string_view, 8> kKept = {
    "Content-Disposition",   "Cache-Control", "Expires",       "Last-Modified",
    "Docker-Content-Digest", "X-Repo-Commit", "X-Linked-Etag", "X-Linked-Size"};

bool HasControls(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return (u < 0x20 && c != '\t') || u == 0x7f;
  });
}

bool Has(const HttpHead& head, std::string_view name) {
  return std::any_of(head.headers.begin(), head.headers.end(),
                     [name](const HttpHeader& h) { return EqualsIgnoreCase(h.name, name); });
}

// All fields of a name that is a list, as one.
std::string Joined(const HttpHead& head, std::string_view name) {
  std::string all;
  for (const HttpHeader& header : head.headers) {
    if (!EqualsIgnoreCase(header.name, name)) continue;
    if (!all.empty()) all += ", ";
    all += header.value;
  }
  return all;
}

std::optional<std::string> ValueOf(const HttpHead& head, std::string_view name) {
  if (name == "Cache-Control") {
    std::string all = Joined(head, name);
    return all.empty() ? std::nullopt : std::optional(std::move(all));
  }
  if (Has(head, name)) {
    const auto value = head.Find(name);
    return value ? std::optional<std::string>(*value) : std::nullopt;
  }
  for (const HttpHeader& header : head.redirect_headers) {
    if (EqualsIgnoreCase(header.name, name)) return header.value;
  }
  return std::nullopt;
}

// Adds the fields that fit, in kKept's order.
void Keep(std::string_view name, std::string value, std::vector<HttpHeader>* kept, size_t* bytes) {
  const size_t size = name.size() + value.size();
  if (value.size() > kMaxKeptFieldBytes || *bytes + size > kMaxKeptBytes || HasControls(value)) {
    return;
  }
  *bytes += size;
  kept->push_back({std::string(name), std::move(value)});
}

// The members of a comma-separated list; a comma within a quoted string separates nothing (RFC 9110
// section 5.6). nullopt where a quoted string does not end.
std::optional<std::vector<std::string_view>> Members(std::string_view list) {
  std::vector<std::string_view> members;
  size_t begin = 0;
  bool quoted = false;
  for (size_t i = 0; i < list.size(); ++i) {
    if (quoted && list[i] == '\\') {
      ++i;
    } else if (list[i] == '"') {
      quoted = !quoted;
    } else if (list[i] == ',' && !quoted) {
      members.push_back(TrimAscii(list.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (quoted) return std::nullopt;
  members.push_back(TrimAscii(list.substr(begin)));
  return members;
}

// RFC 9111 section 5.2. `private` with field names forbids no more than those fields; to keep the
// rest would mean to take them out, so it counts as a bare one. What can't be read forbids.
bool ControlAllows(std::string_view control) {
  const auto members = Members(control);
  if (!members) return false;
  return std::none_of(members->begin(), members->end(), [](std::string_view member) {
    const std::string_view name = TrimAscii(member.substr(0, member.find('=')));
    return EqualsIgnoreCase(name, "no-store") || EqualsIgnoreCase(name, "private") ||
           EqualsIgnoreCase(name, "no-cache");  // or else each use would need a question
  });
}

bool VaryAllows(std::string_view vary) {
  const auto members = Split(vary, ',');
  return std::all_of(members.begin(), members.end(), [](std::string_view member) {
    member = TrimAscii(member);
    return member.empty() || EqualsIgnoreCase(member, "Accept-Encoding");
  });
}

}  // namespace

AnswerFields ReadAnswerFields(const HttpHead& head) {
  AnswerFields fields;
  size_t bytes = 0;
  for (const std::string_view name : kKept) {
    if (auto value = ValueOf(head, name)) Keep(name, std::move(*value), &fields.headers, &bytes);
  }
  fields.shared_cacheable = !Has(head, "Set-Cookie") &&
                            ControlAllows(Joined(head, "Cache-Control")) &&
                            VaryAllows(Joined(head, "Vary"));
  return fields;
}

AnswerFields Refreshed(AnswerFields known, const AnswerFields& not_modified) {
  AnswerFields fresh;
  size_t bytes = 0;
  const auto find = [](std::vector<HttpHeader> const& in, std::string_view name) {
    return std::find_if(in.begin(), in.end(), [name](const auto& h) { return h.name == name; });
  };
  for (const std::string_view name : kKept) {
    if (const auto now = find(not_modified.headers, name); now != not_modified.headers.end()) {
      Keep(name, now->value, &fresh.headers, &bytes);
    } else if (const auto old = find(known.headers, name); old != known.headers.end()) {
      Keep(name, old->value, &fresh.headers, &bytes);
    }
  }
  fresh.shared_cacheable = known.shared_cacheable && not_modified.shared_cacheable;
  return fresh;
}

}  // namespace dartfs::core
