# SPDX-License-Identifier: MIT
"""python -m tsock: the program tsock-producer, in place of this process."""

import os
import sys

from .producer import find_program


def _become(program: str) -> None:
    if os.path.realpath(program) == os.path.realpath(sys.argv[0]):
        sys.exit(
            "%s: %s only starts the program of the Python package, "
            "and this package was installed without it"
            % (os.path.basename(program), program)
        )
    os.execv(program, [program] + sys.argv[1:])


def main() -> None:
    """tsock-producer."""
    _become(find_program())


def pack() -> None:
    """tsock-pack, which lies beside it."""
    _become(os.path.join(os.path.dirname(find_program()), "tsock-pack"))


if __name__ == "__main__":
    main()
