#!/usr/bin/env python3
"""Checks what the compiler does not: check_style.py <top of the tree>.

Prints one line a finding, `path:line: [rule] what to do`, and exits with 1 if there is one.
Standard library only.
"""

import os
import re
import subprocess
import sys
from typing import NamedTuple

import cpp_scan

MAX_COLUMNS = 100
MAX_HEADER_LINES = 200
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70

CORE = ["core/base", "core/io", "core/store", "core/engine"]
# What each layer may include, itself aside.
MAY_INCLUDE = {
    "core/base": [],
    "core/io": CORE[:1],
    "core/store": CORE[:2],
    "core/engine": CORE[:3],
    "fs": CORE,
    "httpd": CORE,
    "p2p": CORE,
    "app": CORE + ["fs", "httpd", "p2p"],
    "ctl": CORE + ["fs", "httpd", "p2p", "app"],
}
# A library's headers -> the only files under src that may see them.
FENCED_HEADERS = [
    (r"(fuse3/)?fuse\w*\.h", "fs/fuse_"),
    (r"fuse3/.*", "fs/fuse_"),
    (r"curl/.*", "core/io/curl_"),
    (r"liburing(\.h|/.*)", "core/io/uring_"),
    (r"lmdb\.h", "core/store/index_"),
]
# Slow to compile: never through another header.
SOURCE_ONLY_HEADERS = r"nlohmann/(?!json_fwd\.hpp).*|CLI/.*|boost/.*|prometheus/.*"

CPP_SUFFIXES = (".cc", ".h")
CODE_SUFFIXES = CPP_SUFFIXES + (".cmake", "CMakeLists.txt", ".py", ".sh")
TEXT_SUFFIXES = CODE_SUFFIXES + (".md",)
SKIPPED_FOLDERS = {".git", "build", "__pycache__"}

# Of a developer's machine or tools, not of the project. Written so that no pattern finds itself.
FORBIDDEN_WORDS = [
    r"[/]work[/]",
    r"\bissue\s*#\s*\d",
    r"\b(?:fixes|closes|see)\s+#\d",
    r"clau[d]e",
    r"chat[g]pt",
    r"open[a]i\b",
    r"anthropi[c]",
    r"\bagent[ -]session",
    r"deb[.]debian[.]org",
    r"registry[.]npmjs[.]org",
    r"\bpypi[.]org",
    r"proxy[.]golang[.]org",
]
FORBIDDEN = re.compile("|".join(FORBIDDEN_WORDS), re.IGNORECASE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class Finding(NamedTuple):
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


def tree_files(top):
    """Paths relative to `top`, of what git would take or, without git, of all."""
    if os.path.exists(os.path.join(top, ".git")):
        command = ["git", "-C", top, "ls-files", "-z", "-co", "--exclude-standard"]
        listed = subprocess.run(command, check=True, capture_output=True, timeout=30).stdout
        paths = [os.fsdecode(path) for path in listed.split(b"\0") if path]
    else:
        paths = []
        for folder, folders, names in os.walk(top):
            folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
            paths += [os.path.relpath(os.path.join(folder, name), top) for name in names]
    return sorted({path for path in paths if os.path.isfile(os.path.join(top, path))})


def layer_of(path):
    """The layer of a path relative to src, or None."""
    for layer in MAY_INCLUDE:
        if path.startswith(layer + "/"):
            return layer
    return None


def check_include(path, number, quote, header):
    """One include of a file under src or of a layer's tests."""
    top, _, inner = path.partition("/")
    own, other = layer_of(inner), layer_of(header)
    if quote == '"':
        if own and other and other != own and other not in MAY_INCLUDE[own]:
            yield Finding(path, number, "layer", f"{own} must not include {other} ({header})")
        if top == "src" and not other:
            yield Finding(path, number, "layer", f"name {header} from src on, in a layer")
    if top != "src":
        return
    for pattern, allowed in FENCED_HEADERS:
        if re.fullmatch(pattern, header) and quote == "<" and not inner.startswith(allowed):
            yield Finding(path, number, "fence", f"{header} is only for src/{allowed}*")
            break
    if path.endswith(".h") and re.fullmatch(SOURCE_ONLY_HEADERS, header):
        yield Finding(path, number, "heavy", f"{header} is only for .cc files")


def check_includes(path, lines):
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match:
            yield from check_include(path, number, match.group(1), match.group(2))


def check_length(path, lines):
    header = path.startswith("src/") and path.endswith(".h")
    limit = MAX_HEADER_LINES if header else MAX_FILE_LINES
    if len(lines) > limit:
        finding = f"{len(lines)} lines, limit {limit}: split it"
        yield Finding(path, limit + 1, "file-length", finding)


def reason_above(lines, first_line):
    """Whether the comment that ends just above `first_line` has a line `// long: <reason>`."""
    at = first_line - 2
    while at >= 0 and lines[at].lstrip().startswith("//"):
        if re.match(r"\s*// long: \S", lines[at]):
            return True
        at -= 1
    return False


def check_functions(path, lines):
    for function in cpp_scan.functions("\n".join(lines) + "\n"):
        length = function.last_line - function.first_line + 1
        if length > MAX_FUNCTION_LINES and not reason_above(lines, function.first_line):
            yield Finding(path, function.first_line, "function-length",
                          f"{function.name} has {length} lines, limit {MAX_FUNCTION_LINES}: "
                          "split it, or say why not in a comment '// long: <reason>' above it")


def check_whitespace(path, lines):
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            yield Finding(path, number, "tab", "use spaces")
        if line != line.rstrip():
            yield Finding(path, number, "trailing-space", "remove it")
        if path.endswith(CODE_SUFFIXES) and len(line) > MAX_COLUMNS:
            yield Finding(path, number, "columns", f"{len(line)} columns, limit {MAX_COLUMNS}")


def check_words(path, lines):
    if FORBIDDEN.search("/" + path):
        yield Finding(path, 1, "word", "the file's name does not belong into the project")
    for number, line in enumerate(lines, 1):
        match = FORBIDDEN.search(line)
        if match:
            yield Finding(path, number, "word", f"'{match.group(0)}' does not belong here")


def check_readmes(paths):
    have = {os.path.dirname(path) for path in paths if os.path.basename(path) == "README.md"}
    folders = {os.path.dirname(path) for path in paths
               if path.startswith("src/") and path.endswith(CPP_SUFFIXES)}
    for folder in sorted(folders - have - {"src"}):
        yield Finding(folder + "/README.md", 1, "readme", "missing: say in a screen what this is")


def check_file(path, text):
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if path.endswith(CPP_SUFFIXES):
        yield from check_length(path, lines)
        if path.startswith(("src/", "tests/")):
            yield from check_includes(path, lines)
        if path.startswith("src/"):
            yield from check_functions(path, lines)
    if path.endswith(TEXT_SUFFIXES):
        yield from check_whitespace(path, lines)
    yield from check_words(path, lines)


def check_tree(top):
    paths = tree_files(top)
    findings = list(check_readmes(paths))
    for path in paths:
        with open(os.path.join(top, path), "rb") as file:
            content = file.read()
        if b"\0" in content:
            continue  # an image or the like
        findings += check_file(path, content.decode("utf-8", errors="replace"))
    return findings


def main(arguments):
    if len(arguments) != 2 or not os.path.isdir(os.path.join(arguments[1], "src")):
        print("usage: check_style.py <top of the tree, with src in it>", file=sys.stderr)
        return 2
    findings = check_tree(arguments[1])
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
