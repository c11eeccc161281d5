#!/bin/sh
# Installs pagewire and pagewire-node, after it has checked their SHA-256 sums:
#
#   curl -fsSL https://github.com/pagewire/pagewire/releases/latest/download/install.sh | sh
#
# Options follow `sh -s --`:
#
#   --version V    the version (default: the version that this file was released with)
#   --dir DIR      the directory of the programs (default: ~/.local/bin)
#   --base-url U   the URL of the directory with the release's files
#
# It never asks for another user's rights, and writes only the two programs. For Linux and macOS; on Windows take the
# zip, or npm.
set -eu

fail() {
	printf 'install.sh: %s\n' "$1" >&2
	exit 1
}

fetch() { # fetch URL FILE
	if command -v curl >/dev/null; then curl -fsSL --retry 2 -o "$2" "$1"; else wget -q -O "$2" "$1"; fi ||
		fail "$1 cannot be fetched: is there such a version, a network, and curl or wget?"
}

sum() { # without a program that sums it prints nothing, and then nothing is installed
	if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# put_back undoes an installation that has not come to its end: the old programs, or none, are in place again.
put_back() {
	for program in $begun; do
		[ ! -e "$staged/$program" ] || { [ ! -e "$dir/$program" ] && [ ! -L "$dir/$program" ]; } || continue
		rm -f "$dir/$program"
		[ ! -e "$staged/old/$program" ] && [ ! -L "$staged/old/$program" ] ||
			mv -f "$staged/old/$program" "$dir/$program"
	done
	rm -rf "$work" "$staged"
}

# All commands are in a function: a script that arrives only in part does nothing.
main() {
	version=@VERSION@ dir=${HOME:?}/.local/bin url=
	while [ $# -gt 0 ]; do
		[ $# -gt 1 ] || fail "$1 has no value: see the head of this file"
		case $1 in
		--version) version=$2 ;;
		--dir) dir=$2 ;;
		--base-url) url=$2 ;;
		*) fail "unknown option $1: --version, --dir and --base-url are known" ;;
		esac
		shift 2
	done
	version=${version#v}
	url=${url:-https://github.com/pagewire/pagewire/releases/download/v$version}
	case $(uname -sm) in
	"Linux x86_64") platform=linux-amd64 ;;
	"Linux aarch64") platform=linux-arm64 ;;
	"Darwin x86_64") platform=darwin-amd64 ;;
	"Darwin arm64") platform=darwin-arm64 ;;
	*) fail "there is no program for $(uname -sm): build it with go install github.com/pagewire/pagewire/bridge/cmd/pagewire@latest, on Windows take the zip" ;;
	esac
	name=pagewire-$version-$platform

	work= staged= begun=
	trap put_back EXIT
	trap 'exit 1' HUP INT TERM
	work=$(mktemp -d)
	fetch "$url/SHA256SUMS" "$work/sums"
	fetch "$url/$name.tar.gz" "$work/archive"
	want=$(awk -v name="$name.tar.gz" '$2 == name { print $1 }' "$work/sums")
	[ -n "$want" ] || fail "SHA256SUMS does not name $name.tar.gz: nothing was installed"
	got=$(sum "$work/archive")
	[ "$got" = "$want" ] || fail "$name.tar.gz has the sum $got and should have $want: nothing was installed"

	tar -xzf "$work/archive" -C "$work"
	mkdir -p "$dir" 2>/dev/null && [ -w "$dir" ] || fail "$dir is not yours to write: name another with --dir"
	for program in pagewire pagewire-node; do # mv would put the program into a directory of its name
		[ ! -d "$dir/$program" ] || fail "$dir/$program is a directory: name another with --dir. Nothing was installed"
	done
	# On the same disk, so that moving needs no room. Other users can neither guess its name nor write in it.
	staged=$(mktemp -d "$dir/.pagewire.XXXXXXXX")
	mkdir "$staged/old"
	cp "$work/$name/pagewire" "$work/$name/pagewire-node" "$staged" || fail "nothing was installed"
	chmod 755 "$staged/pagewire" "$staged/pagewire-node"
	# Moved into place: a running program must not be written over.
	for program in pagewire pagewire-node; do
		begun="$begun $program"
		# By a link, so that the name always has a program. Some file systems have no links.
		[ ! -e "$dir/$program" ] && [ ! -L "$dir/$program" ] || ln -P "$dir/$program" "$staged/old/" 2>/dev/null ||
			mv "$dir/$program" "$staged/old/"
		mv -f "$staged/$program" "$dir/$program"
	done
	begun=
	printf 'pagewire %s is in %s\n' "$version" "$dir"
	case :$PATH: in
	*":$dir:"*) ;;
	*) printf 'which is not on PATH: add it with export PATH="%s:$PATH"\n' "$dir" ;;
	esac
}

main "$@"
