// Package userdir is the directory that the processes of one user on one machine share, with locks and sockets. The
// kernel keeps it for this user alone.
//
// The directory is checked when it is opened: it is this user's own, no link, and closed to others. Both ends of a
// socket ask the kernel for the other's user (SO_PEERCRED on Linux, LOCAL_PEERCRED on macOS and FreeBSD), so they need
// no secret, and should send none. On Windows the profile's access list is the check.
//
// The package follows no link, and deletes only what it has made.
package userdir
