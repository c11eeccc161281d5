package agents

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// notes are a session's notifications for the GET stream: waiting or sent. A stream that breaks may
// have lost the last of them. Then the agent's next stream names the last event that the agent has,
// by Last-Event-ID (MCP 2025-11-25, "Resumability and Redelivery"), and the later ones are sent
// again. Equal notifications are sent again only once.
type notes struct {
	waiting [][]byte
	sent    map[string]uint64 // the event id of each
	number  uint64            // the event id of the last that was sent
	began   uint64            // number when the stream was opened
}

// manySent bounds sent. Above it the older half is forgotten. A session can subscribe to half as
// many URIs.
const manySent = 2048

// add queues a notification, unless an equal one waits already: after one, the agent reads the
// current state.
func (n *notes) add(text []byte) {
	if !slices.ContainsFunc(n.waiting, func(o []byte) bool { return bytes.Equal(o, text) }) {
		n.waiting = append(n.waiting, text)
	}
}

// pop removes the first waiting notification, and counts it as sent under the next number.
func (n *notes) pop() []byte {
	if n.sent == nil {
		n.sent = map[string]uint64{}
	}
	n.number++
	text := n.waiting[0]
	n.sent[string(text)] = n.number
	n.waiting = n.waiting[1:]
	if len(n.sent) > manySent {
		for _, text := range n.since(0)[:manySent/2] {
			delete(n.sent, text)
		}
	}
	return text
}

// since lists the notifications with a higher event id, the oldest first.
func (n *notes) since(number uint64) []string {
	var list []string
	for text, at := range n.sent {
		if at > number {
			list = append(list, text)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Compare(n.sent[a], n.sent[b]) })
	return list
}

// resume begins another stream, and queues the notifications that the agent lacks again. lastID is
// the id of the last event that the agent has, or "" if it has no event of the stream before.
func (n *notes) resume(lastID string) {
	after, err := strconv.ParseUint(lastID, 10, 64)
	if err != nil || after > n.number {
		after = n.began
	}
	n.began = n.number
	waited := n.waiting
	n.waiting = nil
	for _, text := range n.since(after) {
		delete(n.sent, text)
		n.add([]byte(text))
	}
	for _, text := range waited {
		n.add(text)
	}
}
