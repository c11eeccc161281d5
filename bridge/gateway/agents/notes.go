//go:build !js

package agents

import (
	"cmp"
	"slices"
	"strconv"
)

// notes are what a session tells its agent and gets no answer to: those that wait for the GET stream, and those that
// went out on it, by the number that was each event's id. A stream that breaks may have taken the last of them with it,
// so that the next one begins behind what the agent has: it says so by Last-Event-ID (MCP 2025-11-25, "Resumability and
// Redelivery"). That something has changed is said once, however often it was sent.
type notes struct {
	waiting [][]byte
	sent    map[string]uint64
	number  uint64 // of the last that was sent
	began   uint64 // what number was when the stream was opened
}

// manySent is how many different ones are kept, of which the older half goes at a time: a session can subscribe to half
// as many.
const manySent = 2048

// add has one wait, unless the same one does: who is told once, reads what is there then.
func (n *notes) add(text []byte) {
	if !n.waits(string(text)) {
		n.waiting = append(n.waiting, text)
	}
}

func (n *notes) waits(text string) bool {
	return slices.ContainsFunc(n.waiting, func(w []byte) bool { return string(w) == text })
}

// take takes the first of those that wait, which is sent now under the number that is then the last.
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

// since lists what was sent behind a number, the oldest first.
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

// resume begins another stream: what the agent lacks waits once more. lastID is what it says that it has, or "" where
// it has nothing of the stream before.
func (n *notes) resume(lastID string) {
	after, err := strconv.ParseUint(lastID, 10, 64)
	if err != nil || after > n.number {
		after = n.began
	}
	n.began = n.number
	var again [][]byte
	for _, text := range n.since(after) {
		delete(n.sent, text)
		if !n.waits(text) {
			again = append(again, []byte(text))
		}
	}
	n.waiting = append(again, n.waiting...)
}
