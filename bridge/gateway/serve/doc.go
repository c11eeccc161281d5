//go:build !js

// Package serve is what `pagewire serve` runs: an agent's pipe to the daemon (Agent), the daemon itself (Daemon), and the
// process that a person has serve agents over HTTP, which is the daemon while it runs (Foreground).
//
// It puts the parts together and decides nothing that one of them could decide: it only says who is told what, and in
// what order everything ends. What an agent's flags ask for holds for that agent, and as long as it is connected.
package serve
