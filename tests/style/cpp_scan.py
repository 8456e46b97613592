"""Finds function definitions in C++ text by their braces.

A heuristic, good enough for this tree's formatting: comments, literals and preprocessor lines are
blanked out first, then each brace outside a function is judged by the text before it.
"""

import re
from typing import NamedTuple


class Function(NamedTuple):
    first_line: int  # of the declaration, from 1
    last_line: int  # of the closing brace
    name: str


_TOKEN = re.compile(
    r'''
      //[^\n]* | /\*.*?\*/                                  # comments
    | (?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"
    | (?<![0-9a-zA-Z_])(?:u8|[uUL])?'(?:\\.|[^'\\\n])+'     # not a digit separator
    | "(?:\\.|[^"\\\n])*"
    | ^[ \t]*\#(?:[^\n\\]|\\.)*                             # a directive with its continuations
    ''',
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_ACCESS = re.compile(r"^\s*(?:public|private|protected)\s*:")
_SCOPE = re.compile(r"^\s*(?:inline\s+)?(?:namespace|class|struct|union)\b")
_FUNCTION_END = re.compile(r"\)\s*(?:(?:const|noexcept|override|final|mutable)\b\s*)*$")
_LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:\(|$)")


def blank_literals(text):
    """The same text with comments, literals and directives as spaces; lines stay lines."""

    def blank(match):
        token = match.group(0)
        spaces = re.sub(r"[^\n]", " ", token)
        # A string leaves its quotes, so that `extern "C"` can be told from `extern`.
        return '""' + spaces[2:] if token.startswith('"') else spaces

    return _TOKEN.sub(blank, text)


def _without_template(head):
    head = _ACCESS.sub("", head)
    match = re.match(r"\s*template\s*<", head)
    if not match:
        return head
    depth = 1
    for at in range(match.end(), len(head)):
        depth += {"<": 1, ">": -1}.get(head[at], 0)
        if depth == 0:
            return _without_template(head[at + 1 :])
    return head


def _assigns(head):
    """Whether there is an `=` outside parentheses that is not part of an operator."""
    head = re.sub(r"operator\s*[^\s\w(]+", "operator", head)
    depth = 0
    for at, char in enumerate(head):
        depth += {"(": 1, ")": -1}.get(char, 0)
        around = head[max(at - 1, 0) : at + 2]
        if char == "=" and depth == 0 and not re.search(r"[=<>!]=|==", around):
            return True
    return False


def _kind(head):
    """What a brace after `head` opens: "scope", "function" or "other"."""
    head = _without_template(head)
    if re.match(r'\s*extern\s*""\s*$', head):
        return "scope"
    if _SCOPE.match(head) and not _FUNCTION_END.search(head):
        return "scope"
    if re.match(r"\s*enum\b", head):
        return "other"
    if _assigns(head):
        return "function" if _LAMBDA.search(head) else "other"
    return "function" if "(" in head else "other"


def _closing(code, at):
    """Where the brace that opens at `at` is closed; the end of the text where it is not."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, at):
        depth += 1 if match.group(0) == "{" else -1
        if depth == 0:
            return match.start()
    return len(code) - 1


def _name(head):
    names = re.findall(r"(~?\w+(?:::~?\w+)*|operator\s*\S+?)\s*\(", _without_template(head))
    return names[0] if names else "(unnamed)"


def functions(text):
    """The outermost function definitions of C++ text; lambdas count for what is around them."""
    code = blank_literals(text)
    found = []
    head_start = 0
    at = 0
    while at < len(code):
        char = code[at]
        if char == ";" or char == "}":
            head_start = at + 1
        elif char == "{":
            head = code[head_start:at]
            kind = _kind(head)
            if head.count("(") > head.count(")"):
                at = _closing(code, at)  # within an argument
            elif kind == "scope":
                head_start = at + 1
            else:
                at = _closing(code, at)
                following = code[at + 1 :].lstrip()[:1]
                # `A() : b_{1} {`: that brace was an initialiser, the head goes on behind it.
                if following not in (",", "{") or kind == "other":
                    if kind == "function":
                        found.append(_function(code, head_start, at, head))
                    head_start = at + 1
        at += 1
    return found


def _function(code, head_start, end, head):
    access = _ACCESS.match(head)
    start = head_start + (access.end() if access else 0)
    while code[start].isspace():
        start += 1
    return Function(code.count("\n", 0, start) + 1, code.count("\n", 0, end) + 1, _name(head))
