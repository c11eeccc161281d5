// Package events has the MCP Events (SEP-3415) that pages make: their types, arguments and cursors,
// the subscriptions (Sources), and agents' requests for them (Call): streams, polls and webhooks.
//
// It learns of changes from the books (package follow), and of pages that come and go from the
// gateway, whose lock guards all. It never reads a page, and never delivers a webhook.
package events

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/wire"
)

// The names of the types.
const (
	Updated = "page.resource.updated"
	Opened  = "page.opened"
	Closed  = "page.closed"
)

// WebhookInterval is the minIntervalMs of a webhook whose arguments have none: each event starts a
// run of an assistant.
const WebhookInterval = 30 * time.Second

const (
	maxArguments = 4 << 10 // bytes of a subscription's arguments
	maxText      = 200     // characters of a title or address in an event
	leastMs      = 1000    // of minIntervalMs, and the most
	mostMs       = 3_600_000
)

// types are the catalogue, without the ways of delivery. Clients show the descriptions to a model,
// which chooses by them. Schemas may grow only by optional members, because a client renews a
// webhook with its old arguments.
var types = []struct{ name, description, input, payload string }{
	{Updated,
		"State in a web page that the user has open has changed: the resource reads differently than before. " +
			"One event stands for all changes of a resource since the last one, and has no contents. Read the uri then. " +
			"Writing to the page yourself makes an event too.",
		`"uri":{"type":"string","description":"Only this resource. Take it from list_page_resources."},` +
			`"uriPrefix":{"type":"string","description":"Only resources whose URI begins so."},` +
			originSchema + `,` +
			`"minIntervalMs":{"type":"integer","minimum":1000,"maximum":3600000,` +
			`"description":"At most one event in this time for each resource. The last state is always told."}`,
		`"properties":{"uri":{"type":"string"},"title":{"type":"string"},"origin":{"type":"string"},` +
			`"tab":{"type":"integer"},"revision":{"type":"integer",` +
			`"description":"That of this state. What you read has a revision of at least this."}},` +
			`"required":["uri","origin","tab","revision"]`},
	{Opened,
		"The user has opened a web page that offers live state or tools. A reload is no new page.",
		originSchema, pagePayload},
	{Closed,
		"A web page that offered live state or tools has been gone for 30 seconds. A reload does not close it.",
		originSchema, pagePayload},
}

const (
	originSchema = `"origin":{"type":"string","description":"Only pages of this origin, such as https://shop.example."}`
	pagePayload  = `"properties":{"origin":{"type":"string"},"tab":{"type":"integer"},"url":{"type":"string"},` +
		`"title":{"type":"string"}},"required":["origin","tab"]`
)

// List returns the JSON text of an array of all types.
func List(webhook bool) []byte {
	delivery := `["poll","push"]`
	if webhook {
		delivery = `["poll","push","webhook"]`
	}
	text := wire.Text(`[`)
	for _, t := range types {
		text = text.Next().Raw(`{"name":`).Str(t.name).Raw(`,"description":`).Str(
			t.description).Raw(`,"delivery":`).
			Raw(delivery).Raw(`,"inputSchema":{"type":"object","properties":{`).Raw(t.input).
			Raw(`},"additionalProperties":false},"payloadSchema":{"type":"object",`).Raw(
			t.payload).Raw(`}}`)
	}
	return text.Raw(`]`)
}

// A Subscription is a name and its arguments. It is comparable: equal values are the same
// subscription.
type Subscription struct {
	Name string
	// Arguments is the canonical JSON text (RFC 8785) of an object.
	Arguments string

	// The arguments' values; "" and 0 if absent.
	URI, URIPrefix, Origin string
	MinInterval            time.Duration
}

// jcs writes what is inside a string as JCS does, if there is no control character in it.
var jcs = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// Parse reads a subscription. arguments is the JSON text of an object.
func Parse(name string, arguments []byte) (s Subscription, refused *bridge.EventError) {
	if !slices.ContainsFunc(types, func(t struct{ name, description, input, payload string }) bool {
		return t.name == name
	}) {
		return s, &bridge.EventError{Kind: bridge.EventNotFound,
			Message: "there is no event of this name",
			Data:    wire.Text(`{"kind":"event"}`)}
	}
	v, err := wire.Parse(arguments, 4)
	if err != nil || v.Kind() != wire.Object {
		return s, invalid("arguments must be an object")
	}
	if len(v) > maxArguments {
		return s, invalid("the arguments have more than " + strconv.Itoa(maxArguments) + " bytes")
	}
	s.Name = name
	members := map[string]*string{"origin": &s.Origin}
	if name == Updated {
		members["uri"], members["uriPrefix"] = &s.URI, &s.URIPrefix
	}
	given := map[string]wire.Text{}
	v.Members(func(k, m wire.Value) bool {
		key, _ := k.Text()
		to := members[key]
		switch {
		case to != nil:
			text, ok := m.Text()
			if !ok || text == "" ||
				strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
				refused = invalid(key + " must be a string that is not empty")
			}
			*to = text
			given[key] = wire.Text(`"`).Raw(jcs.Replace(text)).Raw(`"`)
		case key == "minIntervalMs" && name == Updated:
			n, ok := m.Int()
			if !ok || n < leastMs || n > mostMs {
				refused = invalid("minIntervalMs must be an integer from 1000 to 3600000")
			}
			s.MinInterval = time.Duration(n) * time.Millisecond
			given[key] = wire.Text(nil).Int64(n)
		default:
			refused = invalid(strconv.Quote(key[:min(len(key), 50)]) + " is no argument of " + name)
		}
		return refused == nil
	})
	if refused != nil {
		return s, refused
	}
	// This is canonical: the names are ASCII, and no string has a control character, for which JCS
	// has its own escapes.
	text := wire.Text(`{`)
	for _, key := range []string{"minIntervalMs", "origin", "uri", "uriPrefix"} {
		if given[key] == nil {
			continue
		}
		text = text.Next().Str(key).Raw(`:`).Bytes(given[key])
	}
	s.Arguments = string(text.Raw(`}`))
	return s, nil
}

func invalid(message string) *bridge.EventError {
	return &bridge.EventError{Kind: bridge.EventInvalid, Message: message}
}

// Matches reports whether an event about a resource of an origin, or with "" about a page, belongs
// to the subscription.
func (s *Subscription) Matches(uri, origin string) bool {
	return (s.URI == "" || s.URI == uri) && strings.HasPrefix(uri, s.URIPrefix) &&
		(s.Origin == "" || s.Origin == origin)
}

// An Occurrence is one event.
type Occurrence struct {
	ID   string // visible ASCII, at most 64 bytes
	Name string
	Time time.Time
	Data []byte // the JSON text of an object
	// Cursor is a watermark: all of the subscription's events at or before it have been taken.
	Cursor string
	// Subject is the URI or page. A newer occurrence of the same subject may replace one that was
	// not delivered.
	Subject string
}

// AppendTo appends the JSON text of the occurrence to dst. cursor adds its Cursor; a poll has the
// cursor in its result.
func (o *Occurrence) AppendTo(dst []byte, cursor bool) []byte {
	return append(o.appendMembers(append(dst, '{'), cursor), '}')
}

func (o *Occurrence) appendMembers(dst []byte, cursor bool) []byte {
	text := wire.Text(dst).Raw(`"eventId":`).Str(o.ID).Raw(`,"name":`).Str(o.Name).Raw(
		`,"timestamp":`).
		Str(o.Time.UTC().Format("2006-01-02T15:04:05.000Z07:00")).Raw(`,"data":`).Bytes(o.Data)
	if cursor {
		text = text.Raw(`,"cursor":`).Str(o.Cursor)
	}
	return text
}

// ID makes the id of an event from a count and a hash of the texts that identify it. The
// subscription is in the hash, so that two webhooks with one URL get two ids for the same change.
// Each node makes the same id.
func (s *Subscription) ID(count int64, of ...string) string {
	return strconv.FormatInt(count, 10) + "." + hash(16, append(of, s.Name, s.Arguments)...)
}

// hash returns the first hexadecimal digits of the SHA-256 of texts.
func hash(digits int, of ...string) string {
	h := sha256.New()
	for _, text := range of {
		h.Write([]byte(strconv.Itoa(len(text)) + ":" + text))
	}
	return hex.EncodeToString(h.Sum(nil))[:digits]
}

// UpdatedData returns the data of an Updated event.
func UpdatedData(uri, title, origin string, tab int, revision int64) []byte {
	text := wire.Text(`{"uri":`).Str(uri)
	if title != "" {
		text = text.Raw(`,"title":`).Str(cut(title))
	}
	return text.Raw(`,"origin":`).Str(origin).Raw(`,"tab":`).Int(tab).Raw(`,"revision":`).Int64(
		revision).Raw(`}`)
}

// PageData returns the data of an Opened or Closed event.
func PageData(origin string, tab int, url, title string) []byte {
	text := wire.Text(`{"origin":`).Str(origin).Raw(`,"tab":`).Int(tab)
	if url != "" {
		text = text.Raw(`,"url":`).Str(cut(url))
	}
	if title != "" {
		text = text.Raw(`,"title":`).Str(cut(title))
	}
	return text.Raw(`}`)
}

func cut(text string) string {
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText-1]) + "…"
	}
	return text
}

// A NoteKind is a kind of Note.
type NoteKind byte

// The kinds.
const (
	Event  NoteKind = iota // the Occurrence
	Active                 // the first note, and one after a gap: only Cursor and Truncated
	Failed                 // Refused: the subscription goes on
)

// A Note is a message of a subscription.
type Note struct {
	Occurrence
	Kind      NoteKind
	Truncated bool // events before the cursor may be missing
	Whole     bool // for Event: no cursor comes between it and the next whole events
	Refused   *bridge.EventError
}

// Members returns the JSON text of the members of the note's notification, and nil for Failed.
func (n *Note) Members() []byte {
	switch n.Kind {
	case Event:
		return n.appendMembers(nil, true)
	case Active:
		text := wire.Text(`"cursor":`).Str(n.Cursor).Raw(`,"truncated":`)
		return strconv.AppendBool(text, n.Truncated)
	}
	return nil
}
