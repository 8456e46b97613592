#include "origin/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "origin/http_text.h"

namespace dartfs::origin {
namespace {

std::string LocalTime(std::time_t t, const char* format) {
  std::tm tm{};
  gmtime_r(&t, &tm);
  char text[64];
  const std::size_t n = std::strftime(text, sizeof text, format, &tm);
  return std::string(text, n);
}

std::string Shown(const DirectoryEntry& entry) {
  return entry.directory ? entry.name + "/" : entry.name;
}

std::vector<DirectoryEntry> DirectoriesFirst(std::vector<DirectoryEntry> entries) {
  std::stable_partition(entries.begin(), entries.end(),
                        [](const DirectoryEntry& entry) { return entry.directory; });
  return entries;
}

std::string RenderNginx(const std::string& title, const std::vector<DirectoryEntry>& entries) {
  constexpr std::size_t kNameWidth = 50;
  std::string out = fmt::format(
      "<html>\r\n<head><title>Index of {0}</title></head>\r\n<body>\r\n<h1>Index of {0}</h1><hr>"
      "<pre><a href=\"../\">../</a>\r\n",
      title);
  for (const DirectoryEntry& entry : DirectoriesFirst(entries)) {
    std::string shown = Shown(entry);
    std::string padding;
    if (shown.size() > kNameWidth) {
      shown = EscapeHtml(shown.substr(0, kNameWidth - 3)) + "..&gt;";
    } else {
      padding.assign(kNameWidth - shown.size(), ' ');
      shown = EscapeHtml(shown);
    }
    out += fmt::format("<a href=\"{}{}\">{}</a>{} {} {:>19}\r\n", PercentEncode(entry.name),
                       entry.directory ? "/" : "", shown, padding,
                       LocalTime(entry.last_modified, "%d-%b-%Y %H:%M"),
                       entry.directory ? "-" : std::to_string(entry.size));
  }
  return out + "</pre><hr></body>\r\n</html>\r\n";
}

// Apache rounds: 1.5K, 23M.
std::string ApacheSize(std::uint64_t size) {
  if (size < 973) return fmt::format("{:>4}", size);
  auto value = static_cast<double>(size);
  for (const char unit : {'K', 'M', 'G', 'T'}) {
    value /= 1024;
    if (value < 9.95) return fmt::format("{:3.1f}{}", value, unit);
    if (value < 972.5) return fmt::format("{:3.0f}{}", value, unit);
  }
  return fmt::format("{:3.0f}P", value / 1024);
}

std::string RenderApache(const std::string& title, const std::vector<DirectoryEntry>& entries) {
  std::string out = fmt::format(
      "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 3.2 Final//EN\">\n<html>\n <head>\n"
      "  <title>Index of {0}</title>\n </head>\n <body>\n<h1>Index of {0}</h1>\n  <table>\n"
      "   <tr><th valign=\"top\"><img src=\"/icons/blank.gif\" alt=\"[ICO]\"></th>"
      "<th><a href=\"?C=N;O=D\">Name</a></th><th><a href=\"?C=M;O=A\">Last modified</a></th>"
      "<th><a href=\"?C=S;O=A\">Size</a></th><th><a href=\"?C=D;O=A\">Description</a></th></tr>\n"
      "   <tr><th colspan=\"5\"><hr></th></tr>\n",
      title);
  if (title != "/") {
    out +=
        "<tr><td valign=\"top\"><img src=\"/icons/back.gif\" alt=\"[PARENTDIR]\"></td>"
        "<td><a href=\"../\">Parent Directory</a></td><td>&nbsp;</td>"
        "<td align=\"right\">  - </td><td>&nbsp;</td></tr>\n";
  }
  for (const DirectoryEntry& entry : entries) {
    out += fmt::format(
        "<tr><td valign=\"top\"><img src=\"/icons/{}.gif\" alt=\"[{}]\"></td>"
        "<td><a href=\"{}{}{}\">{}</a></td><td align=\"right\">{}  </td>"
        "<td align=\"right\">{}</td><td>&nbsp;</td></tr>\n",
        entry.directory ? "folder" : "unknown", entry.directory ? "DIR" : "   ",
        entry.name.find(':') != std::string::npos ? "./" : "",
        PercentEncode(entry.name, "$-_.+!*'(),:@&=~"), entry.directory ? "/" : "",
        EscapeHtml(Shown(entry)), LocalTime(entry.last_modified, "%Y-%m-%d %H:%M"),
        entry.directory ? "  - " : ApacheSize(entry.size));
  }
  return out + "   <tr><th colspan=\"5\"><hr></th></tr>\n</table>\n</body></html>\n";
}

std::string RenderPython(const std::string& title, const std::vector<DirectoryEntry>& entries) {
  std::string out = fmt::format(
      "<!DOCTYPE HTML>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<title>Directory listing for {0}</title>\n</head>\n<body>\n"
      "<h1>Directory listing for {0}</h1>\n<hr>\n<ul>\n",
      title);
  for (const DirectoryEntry& entry : entries) {
    out += fmt::format("<li><a href=\"{}{}\">{}</a></li>\n", PercentEncode(entry.name, "_.-~"),
                       entry.directory ? "/" : "", EscapeHtml(Shown(entry)));
  }
  return out + "</ul>\n<hr>\n</body>\n</html>\n";
}

// nginx escapes what JSON requires and passes other bytes on, UTF-8 or not.
std::string JsonString(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string RenderJson(const std::vector<DirectoryEntry>& entries) {
  std::string out = "[\r\n";
  std::string separator;
  for (const DirectoryEntry& entry : DirectoriesFirst(entries)) {
    out += separator;
    out += fmt::format("{{ \"name\":{}, \"type\":\"{}\", \"mtime\":\"{}\"", JsonString(entry.name),
                       entry.directory ? "directory" : "file", FormatHttpDate(entry.last_modified));
    if (!entry.directory) out += fmt::format(", \"size\":{}", entry.size);
    out += " }";
    separator = ",\r\n";
  }
  return out + "\r\n]\r\n";
}

}  // namespace

Listing RenderIndex(IndexFormat format, std::string_view path,
                    const std::vector<DirectoryEntry>& entries) {
  std::string title = EscapeHtml(PercentDecode(path));
  switch (format) {
    case IndexFormat::kApache:
      if (title.size() > 1) title.pop_back();
      return {RenderApache(title, entries), "text/html;charset=UTF-8"};
    case IndexFormat::kPython:
      return {RenderPython(title, entries), "text/html; charset=utf-8"};
    case IndexFormat::kJson:
      return {RenderJson(entries), "application/json"};
    default:
      return {RenderNginx(title, entries), "text/html"};
  }
}

}  // namespace dartfs::origin
