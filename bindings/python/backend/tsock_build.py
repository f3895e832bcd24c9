# SPDX-License-Identifier: MIT
"""How pip makes a wheel or a source archive of this package (PEP 517).

    pip install .                        everything, from a checkout
    pip install bindings/python          the same
    pip install . -C build-dir=build     with the objects that are there

make builds the library and the producer in a temporary folder, setuptools
packs them with the Python files, and auditwheel copies the system libraries
that they need beside them, makes them find each other, and names the wheel by
the oldest system on which it can run.  Nothing is left in the source tree.
"""

import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
TOP = os.path.dirname(os.path.dirname(PACKAGE))
SOVERSION = "libtsock.so.0.1"

# What a source archive holds: all that make needs for what is installed.
SOURCES = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "THIRD_PARTY",
    "bindings",
    "docs",
    "examples",
    "include",
    "lib",
    "producer",
    "pyproject.toml",
    "test/setup.sh",
)

# One wheel for every Python 3: the package has no extension module.
SETUP = """\
import glob
from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.dist import Distribution


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", %r


setup(
    distclass=Binary,
    cmdclass={"bdist_wheel": Wheel},
    data_files=[("share/man/man1", sorted(glob.glob("man/*.1")))],
)
"""


def _forget_bytecode():
    """Python has written this file's own into the source tree by now."""
    sys.dont_write_bytecode = True
    try:
        os.unlink(__cached__)
        os.rmdir(os.path.dirname(__cached__))
    except (NameError, TypeError, OSError):
        pass


_forget_bytecode()


def _fail(text):
    """One sentence: pip shows what was printed, and no traceback."""
    sys.exit("tsock: " + text)


# ---- what make builds ----------------------------------------------------

PACKAGES = (
    "gcc libc6-dev make pkg-config libzmq3-dev libjpeg-dev libpng-dev "
    "zlib1g-dev liburing-dev libxxhash-dev librandom123-dev libwebp-dev"
)


def _lacking(what):
    _fail(
        "the wheel can't be built, because this machine lacks %s.  On Debian "
        "or Ubuntu, as root: apt-get install %s" % (what, PACKAGES)
    )


def _check_tools():
    if not os.path.exists(os.path.join(TOP, "include", "tsock", "tsock.h")):
        _fail(
            "the C sources are not in %s: the package is built from a whole "
            "checkout or from its source archive" % TOP
        )
    compiler = os.environ.get("CC", "cc").split() or ["cc"]
    tools = [compiler[0], "make", "pkg-config"]
    missing = [tool for tool in tools if not shutil.which(tool)]
    if compiler[0] in missing:
        missing[0] = "a C compiler (%s)" % compiler[0]
    if missing:
        _lacking(" and ".join(missing))
    for module in ("auditwheel", "setuptools"):
        if importlib.util.find_spec(module) is None:
            _fail(
                "%s is needed to build the wheel, and is not installed; pip "
                "brings it along unless --no-build-isolation is given"
                % module
            )


def _make(build):
    """Build the library and the producer; what was said goes to stdout.

    build is make's B: a folder's name, from TOP on where it is not absolute.
    """
    command = [
        "make",
        "--no-print-directory",
        "-j%d" % len(os.sched_getaffinity(0)),
        "B=" + build,
        "lib",
        "producer",
    ]
    said = []
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "B")}
    # The wheel has copies of what is linked: libtiff would bring libjbig, which
    # is under the GPL.
    # Those of audio and what they load would be a dozen more, and libavif loads
    # four libraries that write files.
    for left_out in ("TIFF", "AVIF", "SNDFILE", "SOXR"):
        env.setdefault(left_out, "0")
    with subprocess.Popen(
        command,
        cwd=TOP,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        for line in process.stdout:
            said.append(line.decode("utf-8", "replace"))
            print(said[-1], end="")
    if process.returncode == 0:
        return
    missing = re.search(r"\*\*\* not found: (.*);", "".join(said))
    if missing:
        _lacking(missing.group(1).replace(" ", ", ") + " with headers")
    _fail(
        "make could not build the library and the producer; its first error:"
        "\n  %s" % _first_error(said)
    )


def _first_error(said):
    for line in said:
        if re.search(r"\berror\b|\*\*\*|No such file", line):
            return line.strip()
    return said[-1].strip() if said else "it said nothing"


# ---- the wheel -----------------------------------------------------------


def _stage(folder, build=None):
    """The package as setuptools shall see it, with what make built."""
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(os.path.join(PACKAGE, name), folder)
    for name in ("LICENSE", "THIRD_PARTY"):
        shutil.copy(os.path.join(TOP, name), folder)
    os.mkdir(os.path.join(folder, "man"))
    for page in glob.glob(os.path.join(TOP, "producer", "*.1")):
        shutil.copy(page, os.path.join(folder, "man"))
    package = os.path.join(folder, "tsock")
    shutil.copytree(
        os.path.join(PACKAGE, "tsock"),
        package,
        ignore=shutil.ignore_patterns("__pycache__", "_lib"),
    )
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    with open(os.path.join(folder, "setup.py"), "w") as out:
        out.write(SETUP % platform)
    if build:
        own = os.path.join(package, "_lib")
        os.mkdir(own)
        shutil.copy(os.path.join(build, "lib", SOVERSION), own)
        for program in ("tsock-producer", "tsock-pack"):
            shutil.copy(os.path.join(build, "bin", program), own)
        shutil.copytree(
            os.path.join(TOP, "include"), os.path.join(own, "include")
        )


def _setuptools(hook, folder, *arguments):
    """Call a hook of setuptools, as if folder were the source tree."""
    from setuptools import build_meta

    before = os.getcwd()
    os.chdir(folder)
    try:
        return getattr(build_meta, hook)(*arguments)
    finally:
        os.chdir(before)


def _small_libzmq(folder):
    """A folder in which libzmq.so.5 is pyzmq's; None where that isn't there.

    Debian's brings PGM, NORM, GSSAPI, Kerberos and others into every process
    that loads it, which this package never uses; pyzmq's brings libsodium.
    """
    spec = importlib.util.find_spec("zmq")
    if spec is None or not spec.origin:
        return None
    site = os.path.dirname(os.path.dirname(spec.origin))
    found = glob.glob(os.path.join(site, "pyzmq.libs", "libzmq*.so.5*"))
    if not found:
        return None
    os.symlink(found[0], os.path.join(folder, "libzmq.so.5"))
    return folder


def _repair(wheel, out, scratch):
    """auditwheel: the wheel with the libraries that it needs; its name."""
    os.mkdir(scratch)
    env = dict(os.environ)
    small = _small_libzmq(scratch)
    if small:
        env["LD_LIBRARY_PATH"] = ":".join(
            p for p in (small, env.get("LD_LIBRARY_PATH")) if p
        )
    made = os.path.join(scratch, "made")
    command = [sys.executable, "-m", "auditwheel", "repair", "--strip"]
    command += ["--lib-sdir", "/_lib", "--wheel-dir", made, wheel]
    done = subprocess.run(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    said = done.stdout.decode("utf-8", "replace")
    print(said, end="")
    if done.returncode:
        _fail(
            "auditwheel could not add the system's libraries to the wheel: %s"
            % (said.strip().rpartition("\n")[2] or "it said nothing")
        )
    (name,) = os.listdir(made)
    shutil.move(os.path.join(made, name), os.path.join(out, name))
    return name


def build_wheel(
    wheel_directory, config_settings=None, metadata_directory=None
):
    """PEP 517: build the wheel; -C build-dir=DIR keeps make's objects."""
    _check_tools()
    out = os.path.abspath(wheel_directory)
    kept = (config_settings or {}).get("build-dir")
    with tempfile.TemporaryDirectory(prefix="tsock-build-") as temp:
        build = kept or temp + "/build"
        _make(build)
        os.mkdir(temp + "/stage")
        _stage(temp + "/stage", os.path.join(TOP, build))
        name = _setuptools("build_wheel", temp + "/stage", temp)
        return _repair(os.path.join(temp, name), out, temp + "/repair")


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """PEP 517: the wheel's metadata, without building it."""
    out = os.path.abspath(metadata_directory)
    with tempfile.TemporaryDirectory(prefix="tsock-build-") as temp:
        _stage(temp)
        return _setuptools("prepare_metadata_for_build_wheel", temp, out)


# ---- the source archive --------------------------------------------------


def _skip(info):
    parts = info.name.split("/")
    if "__pycache__" in parts or "_lib" in parts[-2:-1]:
        return None
    if parts[-1].startswith(".") or parts[-1].endswith((".pyc", ".egg-info")):
        return None
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    return info


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517: the sources of the package, the library and the producer."""
    out = os.path.abspath(sdist_directory)
    with tempfile.TemporaryDirectory(prefix="tsock-build-") as temp:
        _stage(temp)
        _setuptools("prepare_metadata_for_build_wheel", temp, temp)
        (info,) = glob.glob(temp + "/*.dist-info")
        base = os.path.basename(info)[: -len(".dist-info")]
        name = base + ".tar.gz"
        with tarfile.open(
            os.path.join(out, name), "w:gz", format=tarfile.PAX_FORMAT
        ) as tar:
            tar.add(info + "/METADATA", base + "/PKG-INFO", filter=_skip)
            for source in SOURCES:
                tar.add(
                    os.path.join(TOP, source),
                    base + "/" + source,
                    filter=_skip,
                )
    return name
