// Package serve implements `pagewire serve`: an agent's pipe to the daemon (Agent), the daemon
// itself (Daemon), and a process that a person starts to serve agents over HTTP (Foreground). That
// process is the daemon while it runs.
//
// The package connects the other packages. It decides which part informs which, and the order in
// which the parts end. A part makes every decision that it can make alone. An agent's flags hold
// for that agent while it is connected.
//
// It never speaks MCP, and never looks into a page or a message. Each part has a lock of its own
// (process, attached, launcher). A part calls the gateway with its lock held, and the gateway calls
// none of them.
package serve
