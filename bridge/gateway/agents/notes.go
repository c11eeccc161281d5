package agents

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// notes are a session's notifications for the GET stream: those that wait, and those that were sent, by their event's
// id. A stream that breaks may have lost the last of them. Then the agent's next stream names the last event that the
// agent has, by Last-Event-ID (MCP 2025-11-25, "Resumability and Redelivery"), and the later ones are sent again. Equal
// notifications are sent once.
type notes struct {
	waiting [][]byte
	sent    map[string]uint64
	number  uint64 // of the last that was sent
	began   uint64 // number when the stream was opened
}

// manySent is how many different ones are kept. Above it the older half goes. A session can subscribe to half as many.
const manySent = 2048

// add has a notification wait, unless an equal one waits already: after one, the agent reads the current state.
func (n *notes) add(text []byte) {
	if !slices.ContainsFunc(n.waiting, func(o []byte) bool { return bytes.Equal(o, text) }) {
		n.waiting = append(n.waiting, text)
	}
}

// take takes the first that waits. It counts as sent, under the new number.
func (n *notes) take() []byte {
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

// since lists the notifications that were sent after a number, the oldest first.
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

// resume begins another stream. The notifications that the agent lacks wait once more. lastID is the last that the
// agent has, or "" if it has none of the stream before.
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
