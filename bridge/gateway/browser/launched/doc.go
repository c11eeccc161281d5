//go:build !js

// Package launched is the browser that `serve --launch` starts, and that all agents of a user share.
//
// A browser that listens on a TCP port is open to every user of the machine. Ours takes its commands on a pipe instead,
// and ends when the last writing end of that pipe is closed. The process of an agent that starts the browser (the
// starter) sends its two ends of the pipe to the daemon, which speaks with the browser, and the daemon sends copies of
// them to each other agent's process that asked for the browser. Those processes are the holders. They only keep the
// copies. So the browser and its tabs outlive the daemon, the next daemon has the ends from a holder, and the browser
// ends with its last holder.
//
// The kernel carries the ends between the processes (SCM_RIGHTS). No process opens, runs or removes anything that
// another one names. Windows has no such way, and no launched browser.
//
//   - start.go starts a browser in a profile of its own (profile.go), and cleans up behind it
//   - browser.go is the daemon's use of the pipe, transport.go the messages on it
//   - ends_unix.go keeps and carries ends, messages.go what goes with them
//   - holder.go is an agent's process, server.go the daemon
package launched
