// Package daemon gives a user one process that has the pages, and each agent a pipe to it.
//
// An agent program starts `pagewire serve`, which is a Pipe: it connects to the daemon's Unix socket in the user's
// directory (package userdir), or starts the daemon first. Each end sends one line, its Hello. Then the agent's
// messages pass unchanged, both ways at once. Between them the daemon sends a heartbeat twice a second, and the
// session's snapshot, which the pipe keeps for the next daemon and does not understand.
//
// When the daemon dies, hangs or makes room for a newer build, the pipe goes on with the next one. It repeats the
// handshake, the log level and the subscriptions, and sends requests without an answer again. Tool calls get an error
// instead, since they may have run (record.go). A pipe ends a daemon that hangs only after a probe on a new connection,
// and only the process that the kernel names (watch.go). If no daemon can run, the same code serves the agent within
// its own process, and looks for a daemon again later.
//
// The package never runs, opens or writes to anything that a hello names, and deletes only what it has made. It sends
// no secret: the kernel confirms that both ends of the socket are this user's.
package daemon
