#!/usr/bin/env python3
"""Tests of the style check: each rule must find its fault in a small tree, and nothing else."""

import os
import subprocess
import sys
import tempfile
import unittest

import check_style
import cpp_scan

CLEAN = {
    "README.md": "# A tree\n",
    "src/main.cc": '#include "app/app.h"\nint main() { return 0; }\n',
    "src/app/README.md": "app\n",
    "src/app/app.h": '#include "fs/tree.h"\n#include "httpd/door.h"\n#include "p2p/ring.h"\n',
    "src/fs/README.md": "fs\n",
    "src/fs/tree.h": '#include "core/engine/engine.h"\n#include <nlohmann/json_fwd.hpp>\n',
    "src/fs/fuse_loop.cc": "#include <fuse3/fuse_lowlevel.h>\n#include <linux/fuse.h>\n",
    "src/httpd/README.md": "httpd\n",
    "src/httpd/door.h": '#include "core/base/text.h"\n',
    "src/p2p/README.md": "p2p\n",
    "src/p2p/ring.h": '#include "core/engine/engine.h"\n',
    "src/core/engine/README.md": "engine\n",
    "src/core/engine/engine.h": '#include "core/store/store.h"\n#include "core/io/disk.h"\n',
    "src/core/store/README.md": "store\n",
    "src/core/store/store.h": '#include "core/io/disk.h"\n',
    "src/core/store/index_lmdb.cc": "#include <lmdb.h>\n",
    "src/core/io/README.md": "io\n",
    "src/core/io/disk.h": '#include "core/base/text.h"\n',
    "src/core/io/curl_client.cc": "#include <curl/curl.h>\n#include <boost/asio.hpp>\n",
    "src/core/io/uring_disk.cc": "#include <liburing.h>\n",
    "src/core/base/README.md": "base\n",
    "src/core/base/text.h": "#include <string>\n",
    "tests/core/io/disk_test.cc": '#include "core/io/disk.h"\n#include "fake/disk.h"\n',
    "tests/fake/disk.h": '#include "core/io/disk.h"\n',
}


def long_function(lines, before=""):
    """A function of that many lines, its declaration and closing brace included."""
    return before + "int F(int x) {\n" + "  ++x;\n" * (lines - 2) + "}\n"


# Name, file, its text, the rule that must speak up.
FAULTS = [
    ("base includes io", "src/core/base/a.cc", '#include "core/io/disk.h"\n', "layer"),
    ("io includes store", "src/core/io/a.cc", '#include "core/store/store.h"\n', "layer"),
    ("store includes engine", "src/core/store/a.h", '# include "core/engine/engine.h"\n', "layer"),
    ("engine includes fs", "src/core/engine/a.h", '#include "fs/tree.h"\n', "layer"),
    ("fs includes httpd", "src/fs/a.h", '#include "httpd/door.h"\n', "layer"),
    ("fs includes p2p", "src/fs/a.h", '#include "p2p/ring.h"\n', "layer"),
    ("httpd includes fs", "src/httpd/a.h", '#include "fs/tree.h"\n', "layer"),
    ("httpd includes p2p", "src/httpd/a.h", '#include "p2p/ring.h"\n', "layer"),
    ("p2p includes httpd", "src/p2p/a.h", '#include "httpd/door.h"\n', "layer"),
    ("p2p includes app", "src/p2p/a.h", '#include "app/app.h"\n', "layer"),
    ("src includes tests", "src/fs/a.h", '#include "fake/disk.h"\n', "layer"),
    ("relative include", "src/fs/a.h", '#include "../httpd/door.h"\n', "layer"),
    ("include without layer", "src/fs/a.h", '#include "tree.h"\n', "layer"),
    ("a layer's test looks up", "tests/core/io/a_test.cc", '#include "fs/tree.h"\n', "layer"),
    ("libfuse elsewhere in fs", "src/fs/a.cc", "#include <fuse_lowlevel.h>\n", "fence"),
    ("libfuse in app", "src/app/a.cc", "#include <fuse3/fuse.h>\n", "fence"),
    ("libcurl in io", "src/core/io/a.cc", "#include <curl/curl.h>\n", "fence"),
    ("libcurl in a file named like it", "src/fs/curl_a.cc", "#include <curl/curl.h>\n", "fence"),
    ("liburing in store", "src/core/store/a.cc", "#include <liburing.h>\n", "fence"),
    ("LMDB in store", "src/core/store/a.cc", "#include <lmdb.h>\n", "fence"),
    ("JSON in a header", "src/fs/a.h", "#include <nlohmann/json.hpp>\n", "heavy"),
    ("boost in a header", "src/httpd/a.h", "#include <boost/beast.hpp>\n", "heavy"),
    ("long header", "src/fs/a.h", "//\n" * 201, "file-length"),
    ("long source", "src/fs/a.cc", "//\n" * 601, "file-length"),
    ("long test", "tests/fs/a_test.cc", "//\n" * 601, "file-length"),
    ("long function", "src/fs/a.cc", long_function(71), "function-length"),
    ("reason is empty", "src/fs/a.cc", long_function(71, "// long:\n"), "function-length"),
    ("reason is not above", "src/fs/a.cc", long_function(71, "// long: x\n\n"), "function-length"),
    ("tab", "src/fs/a.cc", "int\tx;\n", "tab"),
    ("tab in a document", "docs/a.md", "a\tb\n", "tab"),
    ("trailing space", "src/fs/a.cc", "int x; \n", "trailing-space"),
    ("carriage return", "src/fs/a.cc", "int x;\r\n", "trailing-space"),
    ("wide line", "src/fs/a.cc", "//" + "x" * 99 + "\n", "columns"),
    ("wide line in a script", "a.sh", "#" * 101 + "\n", "columns"),
    ("no README", "src/fs/sub/a.cc", "int x;\n", "readme"),
    ("path of a machine", "docs/a.md", "see /wo" + "rk/x\n", "word"),
    ("number of a ticket", "src/fs/a.cc", "// Iss" + "ue #7\n", "word"),
    ("number of a ticket, closed", "docs/a.txt", "Fix" + "es #7\n", "word"),
    ("tool", "a.conf", "made by Clau" + "de\n", "word"),
    ("other tool", "a.conf", "made by Chat" + "GPT\n", "word"),
    ("session", "docs/a.md", "an agent" + " session\n", "word"),
    ("package host", "a.sh", "curl http://deb." + "debian.org/\n", "word"),
    ("other package host", "a.sh", "curl https://registry." + "npmjs.org/\n", "word"),
    ("name of a file", "docs/clau" + "de.md", "x\n", "word"),
]

ALLOWED = [
    ("header at the limit", "src/fs/a.h", "//\n" * 200),
    ("source at the limit", "src/fs/a.cc", "//\n" * 600),
    ("function at the limit", "src/fs/a.cc", long_function(70)),
    ("long function with a reason", "src/fs/a.cc", long_function(90, "// long: one table\n")),
    ("reason within a comment", "src/fs/a.cc",
     long_function(90, "// What it does.\n// long: one table\n// More.\n")),
    ("long function in a test", "tests/fs/a_test.cc", long_function(90)),
    ("line at the limit", "src/fs/a.cc", "//" + "x" * 98 + "\n"),
    ("wide line in a document", "docs/a.md", "x" * 300 + "\n"),
    ("binary file", "docs/a.png", "\0\t clau" + "de"),
    ("words alike", "src/fs/a.cc", "// network/x, framework/y, this issue, reissue 7, #7\n"),
]


class Tree(unittest.TestCase):
    def findings(self, extra):
        with tempfile.TemporaryDirectory(prefix="style-") as top:
            for path, text in {**CLEAN, **extra}.items():
                full = os.path.join(top, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8", newline="") as file:
                    file.write(text)
            return check_style.check_tree(top)

    def test_a_clean_tree_passes(self):
        self.assertEqual(self.findings({}), [])

    def test_each_fault_is_found_alone(self):
        for name, path, text, rule in FAULTS:
            with self.subTest(name):
                found = self.findings({path: text})
                self.assertEqual([finding.rule for finding in found], [rule], found)
                expected = path if rule != "readme" else os.path.dirname(path) + "/README.md"
                self.assertEqual(found[0].path, expected)

    def test_what_is_allowed_passes(self):
        for name, path, text in ALLOWED:
            with self.subTest(name):
                self.assertEqual(self.findings({path: text}), [])

    def test_every_rule_has_a_fault(self):
        with open(check_style.__file__, encoding="utf-8") as file:
            text = file.read()
        for rule in sorted({fault[3] for fault in FAULTS}):
            self.assertIn(f'"{rule}"', text)

    def test_build_folders_are_left_out(self):
        self.assertEqual(self.findings({"build/dev/src/a.cc": "int\tx;\n"}), [])

    def test_exit_codes(self):
        script = check_style.__file__
        with tempfile.TemporaryDirectory(prefix="style-") as top:
            def run():
                command = [sys.executable, "-B", script, top]
                return subprocess.run(command, capture_output=True, text=True, timeout=30)

            self.assertEqual(run().returncode, 2)
            os.makedirs(os.path.join(top, "src"))
            self.assertEqual(run().returncode, 0)
            with open(os.path.join(top, "src", "a.cc"), "w", encoding="utf-8") as file:
                file.write("int\tx;\n")
            result = run()
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stdout, "src/a.cc:1: [tab] use spaces\n")


# Text, and the functions in it as "name first-last".
SCANS = [
    ("void F() {}\n", ["F 1-1"]),
    ("int F(int a,\n      int b) {\n  return a;\n}\n", ["F 1-4"]),
    ("namespace a::b {\nnamespace {\nvoid F() {\n}\n}\n}\n", ["F 3-4"]),
    ("class A {\n public:\n  void F() {\n  }\n  int x_{3};\n  int G() const { return 1; }\n};\n",
     ["F 3-4", "G 6-6"]),
    ("A::A(int x)\n    : a_{x}, b_(x) {\n  F();\n}\n", ["A::A 1-4"]),
    ("A::A() : a_{1},\n  b_{2} {\n}\nvoid F() {\n}\n", ["A::A 1-3", "F 4-5"]),
    ("template <typename T, class U = B<C>>\nclass A {\n  void F() {\n  }\n};\n", ["F 3-4"]),
    ("template <class T>\nvoid F(T t) {\n}\n", ["F 1-3"]),
    ('class CAPABILITY("mutex") M {\n  void F() ACQUIRE() {\n  }\n};\n', ["F 2-3"]),
    ("struct stat F() {\n}\n", ["F 1-2"]),
    ("struct A final : public B<int> {\n  ~A() override {\n  }\n};\n", ["~A 2-3"]),
    ("enum class A : int {\n  kB = (1 << 2),\n};\nvoid F() {\n}\n", ["F 4-5"]),
    ("constexpr int kA[] = {\n  1, F(2),\n};\nvoid F() {\n}\n", ["F 4-5"]),
    ("const auto kF = [](int x) {\n  return x;\n};\n", ["(unnamed) 1-3"]),
    ("bool operator==(A a, B b) {\n}\nA& operator=(A&& a) {\n}\n",
     ["operator== 1-2", "operator= 3-4"]),
    ('extern "C" {\nvoid F() {\n}\n}\n', ["F 2-3"]),
    ("void F(int x = A{1}.b) {\n}\n", ["F 1-2"]),
    ("A(B, Values(C{1}, C{2}));\nvoid F() {\n}\n", ["F 2-3"]),
    ("void F() {\n  if (x) {\n  }\n  for (;;) { G([&] { return 1; }); }\n}\n", ["F 1-5"]),
    ('void F() {\n  a = "}";  // }\n  b = \'}\'; /* }\n } */\n}\n', ["F 1-5"]),
    ('void F() {\n  a = R"x(\n}" )\n)x";\n}\n', ["F 1-5"]),
    ("void F() {\n  int a = 1'000'000;\n  char c = '{';\n}\n", ["F 1-4"]),
    ("#define A(x) \\\n  if (x) {\nvoid F() {\n}\n", ["F 3-4"]),
    ('#include "a.h"  // it\'s\nvoid F() {\n}\n', ["F 2-3"]),
    ('// Of a.\n#pragma once\n\n#include "a.h"\n\nnamespace a {\nvoid F() {\n}\n}\n', ["F 7-8"]),
    ("TEST(A, B) {\n}\n", ["TEST 1-2"]),
    ("// Says F() {\n\nvoid F() {\n}\n", ["F 3-4"]),
    ("", []),
]


class Scan(unittest.TestCase):
    def test_functions(self):
        for text, expected in SCANS:
            with self.subTest(text):
                found = [f"{f.name} {f.first_line}-{f.last_line}" for f in cpp_scan.functions(text)]
                self.assertEqual(found, expected)

    def test_text_cut_anywhere_ends(self):
        for text, _ in SCANS:
            for length in range(len(text)):
                cpp_scan.functions(text[:length])

    def test_blanking_keeps_lines_and_length(self):
        for text, _ in SCANS:
            blanked = cpp_scan.blank_literals(text)
            self.assertEqual(len(blanked), len(text))
            self.assertEqual(blanked.count("\n"), text.count("\n"))


if __name__ == "__main__":
    unittest.main()
