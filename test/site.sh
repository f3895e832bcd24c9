#!/bin/bash
# SPDX-License-Identifier: MIT
# site.sh - the pages of docs/ as a site, in build/docs.  A warning is an error,
# and so is a link to a page or a heading that is not there.
#
# Sphinx, MyST, Furo and Breathe go into build/venv-docs, once; Doxygen has to
# be installed.  Needs the library, which is built.  Exit status 77: it can't be
# built here, and the last line says why.
#
# site.sh --self-test plants links that lead nowhere in the site that it has made,
# and fails if they are not found.
set -u
cd "$(dirname "$0")/.." || exit 1

need='sphinx myst-parser furo breathe'
venv=build/venv-docs
stage=build/docs-src
xml=build/docs-xml

lacking()
{
	echo "$1"
	exit 77
}

fill_venv()
{
	[ "$(cat $venv/filled 2>/dev/null)" != "$need" ] || return 0
	command -v python3 >/dev/null || lacking 'there is no python3'
	python3 -m venv --clear $venv >build/venv-docs.log 2>&1 ||
		lacking "no virtual environment: $(tail -n 1 build/venv-docs.log)"
	# shellcheck disable=SC2086 # a list
	timeout 600 $venv/bin/python -m pip install --quiet --retries 2 \
		--disable-pip-version-check $need >build/venv-docs.log 2>&1 \
		</dev/null ||
		lacking "pip can't install $need: $(tail -n 1 build/venv-docs.log)"
	echo "$need" >$venv/filled
}

# The pages where they lie in the tree, so that links between them hold.
stage_pages()
{
	rm -rf $stage
	mkdir -p $stage
	cp -R --parents ./*.md LICENSE THIRD_PARTY docs include/tsock lib/ring/README.md \
		lib/wire/README.md bench/README.md bindings/python/README.md \
		$stage/
}

read_headers()
{
	rm -rf $xml
	mkdir -p $xml
	printf '%s\n' 'PROJECT_NAME = libtsock' 'INPUT = include/tsock' \
		"OUTPUT_DIRECTORY = $xml" 'STRIP_FROM_PATH = include' \
		'GENERATE_HTML = NO' 'GENERATE_LATEX = NO' 'GENERATE_XML = YES' \
		'OPTIMIZE_OUTPUT_FOR_C = YES' 'EXTRACT_ALL = YES' 'QUIET = YES' \
		'MACRO_EXPANSION = YES' 'EXPAND_ONLY_PREDEF = YES' \
		'PREDEFINED = TSOCK_API=' 'SORT_MEMBER_DOCS = NO' \
		'INPUT_FILTER = "python3 docs/comments.py"' \
		'XML_PROGRAMLISTING = NO' 'WARN_AS_ERROR = NO' \
		'WARN_IF_UNDOCUMENTED = NO' | doxygen - >build/doxygen.log 2>&1
}

mkdir -p build
command -v doxygen >/dev/null || lacking 'doxygen is not installed'
library=${B:-build}/lib/libtsock.so
[ -e "$library" ] || lacking "$library is not built"
fill_venv
stage_pages
read_headers || {
	cat build/doxygen.log
	exit 1
}

# build_site INTO
build_site()
{
	TSOCK_TREE=$PWD TSOCK_DOXYGEN=$PWD/$xml/xml PYTHONDONTWRITEBYTECODE=1 \
		PYTHONPATH=$PWD/bindings/python \
		LIBTSOCK_PATH=$(realpath "$library") \
		$venv/bin/python -m sphinx -q -W --keep-going -b html -c docs \
		-d "$1-tree" $stage "$1"
}

self_test()
{
	local said rc
	# All pages are as the site has them; one is read and written anew.
	rm -rf build/docs-planted build/docs-planted-tree
	cp -a build/docs build/docs-planted
	cp -a build/docs-tree build/docs-planted-tree
	# shellcheck disable=SC2016 # as it stands
	printf '\n[a](nothing.md) [b](../README.md#nothing)\n' \
		>>$stage/docs/operate/slurm.md
	said=$(build_site build/docs-planted 2>&1)
	rc=$?
	rm -rf build/docs-planted build/docs-planted-tree
	[ $rc != 0 ] && grep -q "slurm.md.*'nothing.md'" <<<"$said" &&
		grep -q "slurm.md.*#nothing'" <<<"$said" && return 0
	echo "not found: links that lead nowhere"
	echo "$said"
	return 1
}

rm -rf build/docs build/docs-tree
build_site build/docs || exit 1
printf '%s\n' '<!doctype html><title>libtsock</title>' \
	'<meta http-equiv="refresh" content="0; url=docs/index.html">' \
	>build/docs/index.html
[ "${1:-}" != --self-test ] || self_test || exit
echo 'build/docs/index.html'
