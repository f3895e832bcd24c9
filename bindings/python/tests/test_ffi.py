# SPDX-License-Identifier: MIT
"""The table of _ffi.py is the header, word for word."""

import ctypes
import os
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, CHECKOUT, finish
from tsock import _ffi, errors

HEADERS = os.path.join(CHECKOUT, "include", "tsock")


def header():
    text = ""
    for name in sorted(os.listdir(HEADERS)):
        with open(os.path.join(HEADERS, name)) as f:
            text += f.read()
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def prototypes():
    """{name: (result, [arguments])} of the header, as C text."""
    found = {}
    for text in re.findall(r"^TSOCK_API\s+([^;]+);", header(), re.S | re.M):
        text = " ".join(text.split())
        result, name, arguments = re.match(
            r"(.*?)(tsock_\w+)\((.*)\)$", text
        ).groups()
        # Commas of a callback's own arguments aren't ours.
        arguments = re.sub(
            r"\(\*(\w+)\)\([^)]*\)", r"\1_callback", arguments
        )
        arguments = [a.strip() for a in arguments.split(",")]
        if arguments == ["void"]:
            arguments = []
        found[name] = (result.strip(), arguments)
    return found


SCALARS = {
    "int": ctypes.c_int,
    "unsigned": ctypes.c_uint,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "int64_t": ctypes.c_int64,
    "size_t": ctypes.c_size_t,
    "const char *": ctypes.c_char_p,
    "void": None,
}


def c_type(text, is_argument):
    """The ctypes type of a C declaration; None where any pointer will do."""
    if "_callback" in text:
        return "callback"
    if is_argument:
        text = re.sub(r"\w+$", "", text).strip()
    if text in SCALARS:
        return SCALARS[text]
    assert "*" in text, text
    pointee = text.replace("const", "").replace("struct", "")
    pointee = pointee.replace("*", "").strip()
    if text.count("*") == 1 and pointee in _ffi.STRUCTS:
        return ctypes.POINTER(_ffi.STRUCTS[pointee])
    if text.count("*") == 1 and pointee in SCALARS and pointee != "void":
        return ctypes.POINTER(SCALARS[pointee])
    if text.count("*") == 2:
        return ctypes.POINTER(ctypes.c_void_p)
    return ctypes.c_void_p


def test_every_function_of_the_header_is_in_the_table_and_no_other():
    assert sorted(prototypes()) == sorted(_ffi.TABLE)


@pytest.mark.parametrize("name", sorted(_ffi.TABLE))
def test_types_are_those_of_the_header(name):
    result, arguments = prototypes()[name]
    restype, argtypes = _ffi.TABLE[name]
    assert len(argtypes) == len(arguments)
    assert restype == c_type(result, False)
    for declared, text in zip(argtypes, arguments):
        wanted = c_type(text, True)
        if wanted == "callback":
            assert declared in (_ffi.LOGGER, _ffi.LISTER, _ffi.TELLER)
        else:
            assert declared == wanted, text


def compiled(tmp_path, body):
    """What a C program that includes the header prints."""
    cc = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if not cc:
        pytest.skip("no C compiler")
    source = tmp_path / "sizes.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n"
        "#include <tsock/tsock.h>\nint main(void)\n{\n%s\nreturn 0;\n}\n"
        % body
    )
    include = os.path.join(CHECKOUT, "include")
    program = str(tmp_path / "sizes")
    subprocess.run(
        [cc, "-I", include, "-o", program, str(source)], check=True
    )
    return subprocess.run(
        [program], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()


def test_structs_have_the_compilers_sizes_and_offsets(tmp_path):
    body, wanted = [], []
    for name, struct in _ffi.STRUCTS.items():
        body.append('printf("%%zu\\n", sizeof(struct %s));' % name)
        wanted.append(ctypes.sizeof(struct))
        for member, _ in struct._fields_:
            body.append(
                'printf("%%zu\\n", offsetof(struct %s, %s));'
                % (name, member)
            )
            wanted.append(getattr(struct, member).offset)
    assert [int(w) for w in compiled(tmp_path, "\n".join(body))] == wanted


def test_every_struct_of_the_header_is_declared():
    assert set(re.findall(r"^struct (\w+) \{", header(), re.M)) == set(
        _ffi.STRUCTS
    )


def test_constants_are_those_of_the_header(tmp_path):
    ours = {
        "TSOCK_U8": _ffi.DTYPES["uint8"],
        "TSOCK_F16": _ffi.DTYPES["float16"],
        "TSOCK_BF16": _ffi.DTYPES["bfloat16"],
        "TSOCK_F32": _ffi.DTYPES["float32"],
        "TSOCK_HWC": _ffi.LAYOUTS["hwc"],
        "TSOCK_CHW": _ffi.LAYOUTS["chw"],
        "TSOCK_RAW": _ffi.RAW,
        "TSOCK_UNIT": _ffi.UNIT,
        "TSOCK_MEAN_STD": _ffi.MEAN_STD,
        "TSOCK_JOIN_EPOCH": _ffi.JOINS["epoch"],
        "TSOCK_JOIN_SEGMENT": _ffi.JOINS["segment"],
        "TSOCK_JOIN_NOW": _ffi.JOINS["now"],
        "TSOCK_BETWEEN_AUTO": _ffi.BETWEENS[None],
        "TSOCK_BETWEEN_HOLD": _ffi.BETWEENS["hold"],
        "TSOCK_BETWEEN_LEAVE": _ffi.BETWEENS["leave"],
        "TSOCK_ORDER_PHILOX": _ffi.ORDERS["philox"],
        "TSOCK_ORDER_TORCH": _ffi.ORDERS["torch"],
        "TSOCK_ORDER_SEQUENTIAL": _ffi.ORDERS["sequential"],
        "TSOCK_TRANSPORT_AUTO": _ffi.TRANSPORTS[None],
        "TSOCK_TRANSPORT_VMM": _ffi.TRANSPORTS["vmm"],
        "TSOCK_TRANSPORT_LEGACY": _ffi.TRANSPORTS["legacy"],
        "TSOCK_TRANSPORT_STAGED": _ffi.TRANSPORTS["staged"],
        "TSOCK_GPU_STORED": _ffi.GPU_STORED,
        "TSOCK_WRITABLE": _ffi.WRITABLE,
        "TSOCK_DROP_LAST": _ffi.DROP_LAST,
        "TSOCK_EVEN": _ffi.EVEN,
        "TSOCK_MAX_DIMS": _ffi.MAX_DIMS,
        "TSOCK_STATS_ROWS": _ffi.STATS_ROWS,
        "TSOCK_VERSION_MAJOR": _ffi.VERSION_MAJOR,
        "TSOCK_VERSION_MINOR": _ffi.VERSION_MINOR,
        "TSOCK_EAGAIN": errors.EAGAIN,
        "TSOCK_EEPOCH": errors.EEPOCH,
        "TSOCK_EARG": errors.EARG,
        "TSOCK_ENOTSUP": errors.ENOTSUP,
        "TSOCK_EFORK": errors.EFORK,
    }
    ours.update((name, code) for code, (name, _) in errors._CLASSES.items())
    body = "".join('printf("%%d\\n", (int)%s);' % name for name in ours)
    assert [int(v) for v in compiled(tmp_path, body)] == list(ours.values())


def test_every_error_code_has_a_name_and_a_class():
    codes = dict(
        re.findall(r"^\s*(TSOCK_E\w+) = (-\d+),", header(), re.M)
    )
    known = {name: code for code, (name, _) in errors._CLASSES.items()}
    del codes["TSOCK_EAGAIN"], codes["TSOCK_EEPOCH"]
    assert known == {name: int(code) for name, code in codes.items()}
    for name, code in known.items():
        assert _ffi.lib.tsock_strerror(code) == name.encode()
        error = errors.from_code(code, "why")
        assert isinstance(error, (errors.Error, ValueError))


def test_a_library_that_is_not_there_is_an_error_that_says_so(script):
    out, err = script(
        "try:\n    import tsock\nexcept ImportError as e:\n    print(e)\n",
        LIBTSOCK_PATH="/nowhere/libtsock.so.0.1",
    ).communicate(timeout=150)
    assert "/nowhere/libtsock.so.0.1: no such file" in out, err
    assert "LIBTSOCK_PATH" in out


def test_a_checkout_finds_its_own_library(script):
    if os.path.realpath(BUILD) != os.path.realpath(
        os.path.join(CHECKOUT, "build")
    ):
        pytest.skip("the library under test isn't the checkout's")
    process = script(
        "import os\ndel os.environ['LIBTSOCK_PATH']\n"
        "from tsock import _ffi\nprint(_ffi.path)\n"
    )
    path = finish(process)[0].strip()
    assert os.path.samefile(
        path, os.path.join(BUILD, "lib", "libtsock.so.0.1")
    )


def test_another_library_is_refused_by_name(script, tmp_path):
    cc = shutil.which("cc") or shutil.which("gcc")
    if not cc:
        pytest.skip("no C compiler")
    other = tmp_path / "libtsock.so.0.1"
    names = [n for n in _ffi.TABLE if n != "tsock_version_string"]
    (tmp_path / "other.c").write_text(
        'const char *tsock_version_string(void) { return "7.1.0"; }\n'
        + "".join("int %s(void) { return 0; }\n" % n for n in names)
    )
    subprocess.run(
        [cc, "-shared", "-fPIC", "-o", str(other), str(tmp_path / "other.c")],
        check=True,
    )
    out, err = script(
        "try:\n    import tsock\nexcept ImportError as e:\n    print(e)\n",
        LIBTSOCK_PATH=str(other),
    ).communicate(timeout=150)
    assert "libtsock 7.1.0" in out and "version 0.1" in out, err


def test_importing_leaves_logging_alone(script):
    process = script(
        "import logging, sys\n"
        "import tsock\n"
        "assert not logging.getLogger().handlers\n"
        "assert not logging.getLogger('tsock').handlers\n"
        "assert 'torch' not in sys.modules\n"
        "assert 'numpy' not in sys.modules\n"
    )
    assert finish(process) == ("", "")
