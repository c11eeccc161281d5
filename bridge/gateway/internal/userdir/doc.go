//go:build !js

// Package userdir is what the processes of one user on one machine share: a directory with locks and sockets, which the
// kernel keeps for this user alone.
//
// The directory is checked when it is opened: it is this user's own, no link, and closed to others. Both ends of a socket
// ask the kernel whose process the other is (SO_PEERCRED on Linux, LOCAL_PEERCRED on macOS and FreeBSD), so no secret is
// needed between them, and none should be sent. On Windows the kernel names no peer, and the mode of a file says nothing:
// there the profile's own access list is the check.
//
// The package follows no link, and deletes nothing that it has not made.
package userdir
