//go:build !js

// Package userdir is what the processes of one user on one machine share: a directory with locks and sockets, which the kernel keeps for this user alone.
//
// Everything is checked where it is used: the directory, and each file in it, is this user's own and no link; who
// connects to a socket, and who answers on one, is a process of this user by the kernel's word (SO_PEERCRED on Linux,
// LOCAL_PEERCRED on macOS and FreeBSD). A secret is not needed between two ends of such a socket, and none should be
// sent. On Windows the kernel names no peer, and the mode of a file says nothing: there the profile's own access list
// is the check. Other systems have no sockets here.
//
// It never follows a link, never waits for what somebody else has put in place of a file, never deletes or repairs what
// it has not made, and never changes a mode in silence.
package userdir
