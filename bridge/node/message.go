package node

import (
	"bytes"
	"strconv"
	"strings"
)

// version is the version of the messages between nodes.
const version = "1"

// Kinds of messages, which BUS.md describes.
const (
	kindBeat  = "beat"
	kindBye   = "bye"
	kindAsk   = "ask"
	kindHas   = "has"
	kindOpen  = "open"
	kindPage  = "page"
	kindCore  = "core"
	kindLeave = "leave"
	kindGone  = "gone"
	kindClaim = "claim"
	kindAlive = "alive"
	kindPages = "pages"
	kindCores = "cores"
	kindFound = "found"
)

// The ends of a session at its page's node.
const (
	goneLost = "lost"
	goneOver = "over"
	goneGap  = "gap"
)

// A message is a message of another node, or of this one.
type message struct {
	kind, from string
	words      []string // after kind and from
	body       []byte
}

// parse splits a message into its words and body; ok is false if the text is not a message.
func parse(text []byte) (m message, ok bool) {
	line, body, _ := bytes.Cut(text, []byte("\n"))
	words := strings.Split(string(line), " ")
	if len(words) < 2 {
		return m, false
	}
	return message{words[0], words[1], words[2:], body}, true
}

// number returns a word as a number: 0, which is never valid, if it is not one.
func (m *message) number(i int) uint64 { return number(m.word(i)) }

func number(word string) uint64 {
	n, _ := strconv.ParseUint(word, 10, 64)
	return n
}

func (m *message) word(i int) string {
	if i >= len(m.words) {
		return ""
	}
	return m.words[i]
}

func (m *message) lines() []string {
	if len(m.body) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(m.body), "\n"), "\n")
}

// line is the first line of a message.
func line(kind string, words ...string) []byte {
	return []byte(kind + " " + strings.Join(words, " ") + "\n")
}

// head is the line for messages of a session, of which there are many.
func head(kind, from string, session uint64, rest ...uint64) []byte {
	text := make([]byte, 0, 64)
	text = append(append(append(text, kind...), ' '), from...)
	text = strconv.AppendUint(append(text, ' '), session, 10)
	for _, n := range rest {
		text = strconv.AppendUint(append(text, ' '), n, 10)
	}
	return append(text, '\n')
}

// numbers returns the two numbers of a line, each 0 if the word is not a number.
func numbers(line string) (first, second uint64) {
	one, rest, _ := strings.Cut(line, " ")
	other, _, _ := strings.Cut(rest, " ")
	return number(one), number(other)
}
