//go:build !js

// Package agents brings agents to a gateway: over stdio, and over Streamable HTTP in both eras of the protocol.
//
// Each agent is a session of its own (gateway.Connect): an agent that is started with our stdin and stdout is one, so is
// each Mcp-Session-Id of the legacy era, and in the modern era, which has no sessions, each request. What they ask is
// answered by the core's engine, the same for all of them; here their messages are only framed, bounded and, over HTTP,
// checked for where they come from.
//
// The package never listens (who uses it does), never answers for the engine but where HTTP itself demands it (status
// codes, headers, a session that is not there), keeps no message that the engine could keep, and never lets one agent
// wait for another.
//
// go-sdk's transport carries the legacy sessions over HTTP (legacy.go says what it leaves to us). The modern era it refuses
// where there are sessions, and over stdio it would decode and encode each message once more than needed: these are ours.
package agents

import (
	"bytes"
	"time"
)

const (
	// aliveEvery is how often a stream that is silent says that it is there: proxies cut what is silent for a minute.
	aliveEvery = 15 * time.Second
	// writeTimeout is how long a client may take nothing of what it is sent before its stream is cut.
	writeTimeout = 30 * time.Second
	// bodyTimeout is how long a client may take to send the body of a request.
	bodyTimeout = 30 * time.Second
	// beginning is how much is kept of a message that is too large, to look for its id.
	beginning = 512
)

// oneLine returns a message without line ends, which frame messages in stdio and in event streams. JSON has them only
// between its tokens, but what a page answers is passed on as the page wrote it: it must not begin a line of its own.
func oneLine(message []byte) []byte {
	if bytes.IndexByte(message, '\n') < 0 && bytes.IndexByte(message, '\r') < 0 {
		return message
	}
	clean := bytes.Clone(message)
	for i, c := range clean {
		if c == '\n' || c == '\r' {
			clean[i] = ' '
		}
	}
	return clean
}
