// Package agents brings agents to a gateway: over stdio, and over Streamable HTTP in both eras of
// the protocol.
//
// Each of these is a session of its own (gateway.Connect): an agent on stdin and stdout; an
// Mcp-Session-Id of the legacy era; a request of the modern era, which has no sessions. The
// gateway's engine answers all of them alike. This package frames and bounds their messages.
//
// The package never opens a listener; its callers do. It answers in the engine's place only if HTTP
// itself demands it (status codes, headers, an unknown session). It keeps no message that the
// engine could keep, and one agent never waits for another.
//
// server has the lock for what is open, in both eras; sessions has one for the legacy sessions that
// requests may name; each session has one for its streams. No two are held at once.
//
// It does not use go-sdk's transports; bridge/RATIONALE.md says why.
package agents
