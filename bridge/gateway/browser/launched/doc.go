// Package launched starts the browser that `serve --launch` asks for, and lets all agents of a user share it.
//
// A browser that listens on a TCP port is open to every user of the machine. This one takes its commands on a pipe, and
// ends when the last writing end of that pipe is closed. The agent's process that starts the browser sends the two ends
// of the pipe to the daemon, which speaks with the browser. The daemon sends copies of them to each other agent's process
// that asked for the browser. These processes are the holders. A holder only keeps its copies. So the browser and its tabs
// outlive the daemon, the next daemon gets the ends from a holder, and the browser ends with its last holder.
//
// The kernel carries the ends between the processes (SCM_RIGHTS). No process opens, runs or removes anything that another
// one names. Sockets of Windows carry no handles, so nothing is launched there.
//
//   - start.go starts a browser in a profile of its own (profile.go), and cleans up behind it
//   - pipe.go speaks with a browser; pipe_unix.go keeps ends of its pipe and sends them to other processes
//   - holder.go is an agent's process, server.go the daemon
package launched
