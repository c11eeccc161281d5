// Package serve implements `pagewire serve`: an agent's pipe to the daemon (Agent), the daemon itself (Daemon), and the
// process with which a person serves agents over HTTP, and which is the daemon while it runs (Foreground).
//
// It connects the parts, and leaves every decision to them that one part can make alone. It decides which part informs
// which, and the order in which everything ends. An agent's flags hold for that agent, as long as it is connected.
package serve
