"""Nothing in the package turns bytes or text into code, but for results that carry the signature of their job."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "ilk"
SIGNED = "engines/spark_errors.py: pickle.loads"
STARTED = "app/tasks.py: subprocess.Popen"  # of a command without a word from outside
CALLS = {"eval", "exec", "compile", "__import__"}
MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "marshal",
    "shelve",
    "joblib",
    "yaml",
    "subprocess",
}
ATTRIBUTES = {"load", "loads", "Unpickler", "open", "run", "Popen", "call", "check_call", "check_output"}


def findings(tree: ast.AST) -> Iterator[str]:
    """Every place that could run what it reads."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if (
                module in MODULES and name in ATTRIBUTES
            ):
                yield f"{module}.{name}"
            case ast.Attribute(value=ast.Name(id="os"), attr="system" | "popen"):
                yield f"os.{node.attr}"
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield name
            case ast.ImportFrom(module=module) if module in MODULES:
                yield f"from {module}"
            case ast.keyword(arg="allow_pickle" | "shell"):
                yield str(node.arg)


def test_no_code_comes_from_data():
    found = [
        f"{file.relative_to(SOURCE).as_posix()}: {what}"
        for file in sorted(SOURCE.rglob("*.py"))
        for what in findings(ast.parse(file.read_text()))
    ]
    assert found == [STARTED, SIGNED]


def test_the_process_that_is_started_is_our_own():
    text = (SOURCE / "app" / "tasks.py").read_text()
    assert 'COMMAND = [sys.executable, "-m", "ilk.app.worker"]' in text
    assert text.count("Process(") == text.count("Process(\n        COMMAND,") == 1


def test_the_search_finds_what_it_looks_for():
    lines = [
        "pickle.loads(x)",
        "eval(y)",
        "np.load(f, allow_pickle=True)",
        "from pickle import loads",
        "os.system('x')",
    ]
    text = "\n".join(lines)
    assert sorted(findings(ast.parse(text))) == [
        "allow_pickle",
        "eval",
        "from pickle",
        "os.system",
        "pickle.loads",
    ]
