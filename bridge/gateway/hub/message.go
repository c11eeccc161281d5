//go:build !js

package hub

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The messages between a hub and who joins it, beside MCP. PROTOCOL.md says what they are for, who must answer, and
// what their limits are; testdata/messages.json has good and hostile ones. This file is pure: bytes to values and back.

// Protocol is the version of what is spoken between gateways. It grows when an older one could not understand what is
// said.
const Protocol = 1

const (
	typeHello = "pagewire:hello"
	typeAlive = "pagewire:alive"
	typeShare = "pagewire:share"

	// maxHello and maxNote bound the texts, in bytes; maxShared how many things are shared.
	maxHello, maxNote, maxShared = 4 << 10, 256 << 10, 64
)

// What a process joins as.
const (
	asGateway = "gateway" // it may be the hub next
	asAgent   = "agent"   // it only asks: pagewire ls, read, watch
)

// A hello is the first message each way: the joiner's, then the hub's. Type, protocol and build are the same in every
// version.
type hello struct {
	Type     string `json:"type"` // first: it makes the text a note
	Protocol int    `json:"protocol"`
	Build    string `json:"build"`
	As       string `json:"as,omitempty"` // the joiner's
}

// A note is what the hub says later.
type note struct {
	Type  string            `json:"type"` // first
	Share map[string]string `json:"share,omitempty"`
}

var buildShape = regexp.MustCompile(`^[!-~][ -~]{0,62}[!-~]$|^[!-~]$`)

var errNotHello = errors.New("the first message is not a hello of Pagewire")

// decodeHello reads a hello. Of one of another version only that and the build are looked at.
func decodeHello(text []byte) (h hello, err error) {
	if len(text) > maxHello {
		return hello{}, fmt.Errorf("%w: it has %d bytes, and %d are the most", errNotHello, len(text), maxHello)
	}
	switch err := json.Unmarshal(text, &h); {
	case err != nil:
		return hello{}, fmt.Errorf("%w: it is no JSON object of that shape", errNotHello)
	case h.Type != typeHello:
		return hello{}, fmt.Errorf("%w: its type is %.40q", errNotHello, h.Type)
	case h.Protocol < 1:
		return hello{}, fmt.Errorf("%w: its protocol is %d", errNotHello, h.Protocol)
	case !buildShape.MatchString(h.Build):
		return hello{}, fmt.Errorf("%w: its build is %.80q", errNotHello, h.Build)
	case h.Protocol == Protocol && !slices.Contains([]string{"", asGateway, asAgent}, h.As):
		return hello{}, fmt.Errorf("%w: it joins as %.40q", errNotHello, h.As)
	}
	return h, nil
}

// decodeNote reads what a hub says after its hello. One of a type that is not known has nothing but its type.
func decodeNote(text []byte) (n note, err error) {
	if len(text) > maxNote {
		return note{}, fmt.Errorf("a note of %d bytes, and %d are the most", len(text), maxNote)
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return note{}, errors.New("a note that is no JSON object with a type")
	}
	if kind.Type != typeShare {
		return note{Type: kind.Type}, nil
	}
	if err := json.Unmarshal(text, &n); err != nil {
		return note{}, errors.New("a note of what is shared that is not of that shape")
	}
	if len(n.Share) > maxShared {
		return note{}, fmt.Errorf("a note that shares %d things, and %d are the most", len(n.Share), maxShared)
	}
	return n, nil
}

// versions says that a joiner and a hub do not understand each other.
func versions(joiner, hub hello) string {
	return fmt.Sprintf("the hub is pagewire %s (protocol %d), the joiner %s (protocol %d): restart the agents with "+
		"one version",
		hub.Build, hub.Protocol, joiner.Build, joiner.Protocol)
}

// encode makes a hello or a note a text. Both are made of strings and numbers, which always can be one.
func encode(m any) []byte {
	text, err := json.Marshal(m, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err)
	}
	return text
}
