//go:build !js

// Package daemon gives a user one process that has the pages, and each agent a pipe to it.
//
// An agent program starts `pagewire serve`, which is a Pipe: it connects to the daemon's Unix socket in the user's
// directory (package userdir), or starts the daemon first. Each end says one line, its Hello. Then the agent's messages
// pass unchanged, both ways at once. Between them the daemon says that it works, twice a second, and what the next
// daemon has to know of the session (its snapshot, which the pipe keeps and does not understand).
//
// When the daemon dies, hangs or makes room for a newer build, the pipe goes on with the next one. It repeats the
// handshake, the log level and the subscriptions, and sends requests without an answer again, except tool calls: these
// get an error, since they may have run (record.go). A pipe ends a daemon that hangs only after a probe on a new
// connection, and only the process that the kernel names (watch.go). Where there can be no daemon, the same code serves
// the agent within its own process, and a daemon is looked for again.
//
// The package never runs, opens or writes to what a hello names, never sends a secret, since both ends of the socket are
// this user's by the kernel's word, and never deletes what it has not made.
package daemon
