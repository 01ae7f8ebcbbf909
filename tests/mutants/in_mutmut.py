"""The process that mutmut runs in, in the folder of the copy: `run NAME...`, or `results`, as JSON.

A script and not a module of `tests`: mutmut takes over the search path, and `tests` must mean the copy's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import collected
import operators
from mutmut.__main__ import cli
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files
from mutmut.utils.format_utils import orig_function_and_class_names_from_key

KILLED = ("killed", "timeout", "segfault")


def results() -> Iterator[dict[str, str]]:
    """Each mutant: name, module, function, verdict, and of a survivor what it changes."""
    for path in sorted(walk_mutatable_files()):
        data = SourceFileMutationData(path=path)
        data.load()
        for name, exit_code in sorted(data.exit_code_by_key.items()):
            verdict = status_by_exit_code[exit_code]
            function, of_class = orig_function_and_class_names_from_key(name)
            one = {"name": name, "module": path.stem, "verdict": "killed" if verdict in KILLED else verdict}
            function = function.rstrip("_")  # a property, in the copy
            one["function"] = f"{of_class}.{function}" if of_class else function
            if one["verdict"] != "killed":
                one["diff"] = get_diff_for_mutant(name, path=path)
            yield one


if __name__ == "__main__":
    collected.install()
    operators.install()
    if sys.argv[1:] == ["results"]:
        json.dump(list(results()), sys.stdout)
    else:
        cli()
