"""The folders of src/ are the data flow: an #include may only point along it. What a folder may include is what its
CMakeLists.txt depends on, and CMake refuses a layer that depends on one which src/CMakeLists.txt names later."""

import os
import pathlib
import re
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))

# The rooms of the house, in the order of the data flow.
ROOMS = ("base", "model", "inside", "ingest", "analysis", "node", "present", "measure", "programs")

DECLARATION = re.compile(r"lockstep_(layer|may_include)\(([^)]*)\)")
KEYWORDS = {"DEPENDS": True, "TEST_DEPENDS": True, "LIBRARIES": False, "TEST_LIBRARIES": False, "FOLDERS": False}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def declared(cmake):
    """The layers that a CMakeLists.txt with this text may include; None when it declares no layer."""
    found = None
    for kind, words in DECLARATION.findall(cmake):
        found, named = found or set(), kind == "may_include"
        for word in words.split():
            if word in KEYWORDS:
                named = KEYWORDS[word]
            elif named:
                found.add(word)
    return found


def layers_of(root):
    """Every layer below `root`, with the layers that it may include. Folders below one without a declaration belong to it."""
    layers = {}
    for path in sorted(root.rglob("CMakeLists.txt")):
        may_include = declared(path.read_text(encoding="utf-8"))
        if may_include is not None:
            layers[path.parent.relative_to(root).as_posix()] = may_include
    return layers


def layer_of(path, layers):
    """The layer that a path relative to src/ lies in; None when it lies in none."""
    return next((folder.as_posix() for folder in pathlib.PurePosixPath(path).parents if folder.as_posix() in layers), None)


def includes(root, layers):
    """Every #include below `root`: file, its layer, line, quote and what it names."""
    for path in sorted(root.rglob("*")):
        if path.suffix in (".h", ".cc"):
            name = path.relative_to(root).as_posix()
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if match := INCLUDE.match(line):
                    yield name, layer_of(name, layers), number, match[1], match[2]


def wrong_include(root, layers, layer, quote, target):
    """What is wrong with this #include in a file of `layer`, or None."""
    aim = layer_of(target, layers)
    if quote == "<":
        return f"<{target}> is ours, so it is written in quotes" if aim else None
    if target.startswith(".") or aim is None:
        return f'"{target}" is not a path from src/ to a layer'
    if aim != layer and aim not in layers[layer]:
        return f"{layer} may not include {aim} ({target})"
    if not (root / target).is_file():
        return f'"{target}" does not exist'
    return None


def violations(root):
    """Every wrong #include under `root`, every source file whose folder is in no layer, every dependency that no file has."""
    layers = layers_of(root)
    found = [f"src/{path.relative_to(root)}: no CMakeLists.txt of its folder declares a layer" for path in sorted(root.rglob("*"))
             if path.suffix in (".h", ".cc") and not layer_of(path.relative_to(root), layers)]
    used = {layer: set() for layer in layers}
    for name, layer, number, quote, target in includes(root, layers):
        if layer:
            used[layer].add(layer_of(target, layers))
            if wrong := wrong_include(root, layers, layer, quote, target):
                found.append(f"src/{name}:{number}: {wrong}")
    return found + [f"src/{layer} depends on {below}, which none of its files includes"
                    for layer, may_include in layers.items() for below in sorted(may_include - used[layer])]


class IncludeDirectionTest(unittest.TestCase):
    def test_every_include_points_along_the_data_flow(self):
        self.assertEqual([], violations(SOURCE / "src"))

    def test_no_header_knows_the_command_lines_library(self):
        knowing = [str(path) for path in (SOURCE / "src").rglob("*.h") if "#include <CLI/" in path.read_text(encoding="utf-8")]
        self.assertEqual([], knowing)

    def test_rooms_stand_in_the_order_of_the_data_flow(self):
        named = re.findall(r"^add_subdirectory\(([^)]+)\)", (SOURCE / "src/CMakeLists.txt").read_text(encoding="utf-8"), re.M)
        rooms = [layer.split("/")[0] for layer in named]
        self.assertEqual(sorted(rooms, key=ROOMS.index), rooms)
        self.assertEqual(set(ROOMS), set(rooms))

    def test_a_layer_stands_behind_those_that_it_names(self):
        order = re.findall(r"^add_subdirectory\(([^)]+)\)", (SOURCE / "src/CMakeLists.txt").read_text(encoding="utf-8"), re.M)
        for layer, may_include in layers_of(SOURCE / "src").items():
            if layer in order:  # Others are added by the folder above them.
                self.assertEqual([], [below for below in may_include if below not in order[:order.index(layer)]], layer)

    def test_every_layer_has_its_row_in_the_architecture(self):
        text = (SOURCE / "docs/architecture.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| `([a-z_/]+)` \|", text.split("\n## Rooms\n")[1].split("\n## ")[0], re.M)
        self.assertEqual(sorted(layers_of(SOURCE / "src")), sorted(rows))

    def test_every_room_says_what_it_is_for(self):
        for room in ROOMS:
            self.assertLess(4, len((SOURCE / "src" / room / "README.md").read_text(encoding="utf-8").splitlines()), room)


class ViolationsTest(unittest.TestCase):
    """The check finds what it is there to find."""

    def check(self, files, **may_include):
        """Violations of a tree of these files; a folder of `may_include` (`a__b` is a/b) is a layer that names those."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for layer, below in may_include.items():
                files[f"{layer.replace('__', '/')}/CMakeLists.txt"] = f"lockstep_layer(DEPENDS {below}\n  LIBRARIES fmt::fmt)\n"
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            return violations(root)

    def test_an_arrow_that_points_back_is_found(self):
        found = self.check({"model/run.h": '#include "analysis/idle.h"\n', "analysis/idle.h": ""}, model="", analysis="")
        self.assertEqual(["src/model/run.h:1: model may not include analysis (analysis/idle.h)"], found)

    def test_analysis_does_not_know_ingest(self):
        found = self.check({"analysis/a.cc": '\n#  include "ingest/bytes/b.h"\n', "ingest/bytes/b.h": ""}, analysis="",
                           ingest__bytes="")
        self.assertEqual(["src/analysis/a.cc:2: analysis may not include ingest/bytes (ingest/bytes/b.h)"], found)

    def test_an_unknown_folder_is_found(self):
        self.assertEqual(1, len(self.check({"util/strings.h": "#include <string>\n"}, base="")))
        self.assertEqual(1, len(self.check({"ingest/loose.h": "#include <string>\n"}, ingest__bytes="")))

    def test_relative_and_angled_paths_of_ours_are_found(self):
        found = self.check({"base/a.h": "", "base/b.h": '#include "a.h"\n#include "../base/a.h"\n#include <base/a.h>\n'}, base="")
        self.assertEqual(3, len(found))

    def test_a_dependency_that_nobody_has_is_found(self):
        found = self.check({"base/a.h": "", "model/run.h": "#include <vector>\n"}, base="", model="base")
        self.assertEqual(["src/model depends on base, which none of its files includes"], found)

    def test_what_points_along_is_let_through(self):
        self.assertEqual([], self.check({"base/a.h": "#include <vector>\n#include <fmt/format.h>\n",
                                         "model/testing/b.h": '#include "base/a.h"\n#include <gtest/gtest.h>\n'},
                                        base="", model="base"))


if __name__ == "__main__":
    unittest.main()
