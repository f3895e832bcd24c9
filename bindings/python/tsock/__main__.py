# SPDX-License-Identifier: MIT
"""python -m tsock: the program tsock-producer, in place of this process."""

import os
import sys

from .producer import find_program


def main() -> None:
    program = find_program()
    if os.path.realpath(program) == os.path.realpath(sys.argv[0]):
        sys.exit(
            "tsock-producer: %s only starts the program of the Python package, "
            "and this package was installed without it" % program
        )
    os.execv(program, [program] + sys.argv[1:])


if __name__ == "__main__":
    main()
