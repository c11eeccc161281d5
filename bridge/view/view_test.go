package view_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/testkit/script"
	"github.com/pagewire/pagewire/bridge/view"
)

// TestConversations plays the conversations in testdata. Each file shows one rule or story: prose, then lines of input
// to a Host, each followed by its output, indented. testdata/README.md explains the words.
func TestConversations(t *testing.T) { script.Each(t, converse) }

// converse plays one file.
func converse(t *testing.T, file string) {
	t.Helper()
	script.Play(t, file, func(s *script.Script) func(line string) {
		c := &conversation{Script: s}
		c.host = view.New(c.options(), c)
		return c.line
	})
}

func (c *conversation) options() (o view.Options) {
	c.T.Helper()
	for _, option := range c.Options {
		n := option.Number
		switch option.Name {
		case "Modern":
			o.Era = view.Modern
		case "MaxSubscriptions":
			o.MaxSubscriptions = n
		case "LimitCode":
			o.LimitCode = n
		case "UpdateInterval":
			o.UpdateInterval = bridge.Time(n)
		case "ReadTimeout":
			o.ReadTimeout = bridge.Time(n)
		case "MaxKnown":
			o.MaxKnown = n
		case "MaxViews":
			o.MaxViews = n
		default:
			c.T.Fatalf("unknown option %q", option.Name)
		}
	}
	return o
}

// A conversation is a Host, and the Home that writes down the Host's messages.
type conversation struct {
	*script.Script
	host *view.Host
	now  bridge.Time
}

func (c *conversation) ToView(id view.ID, m bridge.Message) {
	c.Say("%d< %s", id, short(c.T, m.AppendTo(nil)))
}

func (c *conversation) ToServer(text []byte) { c.Say("S< %s", short(c.T, text)) }

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"pagewire","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}`

// short returns a message in the short form of the files.
func short(t testing.TB, text []byte) []byte {
	if !json.Valid(text) {
		t.Errorf("the Host sent what is not JSON: %s", text)
	}
	text = bytes.Replace(text, []byte(`"jsonrpc":"2.0",`), nil, 1)
	return bytes.Replace(text, []byte(modernMeta), []byte("MODERN"), 1)
}

func message(short string) []byte {
	if strings.HasPrefix(short, "{") && !strings.Contains(short, `"jsonrpc"`) {
		short = `{"jsonrpc":"2.0",` + short[1:]
	}
	short = strings.ReplaceAll(short, "MODERN", modernMeta)
	// STREAM n stands for the _meta of a message on the stream of the Host's n-th request, a listen.
	for {
		before, rest, ok := strings.Cut(short, "STREAM ")
		if !ok {
			return []byte(short)
		}
		end := strings.IndexAny(rest, ",}")
		short = before + `"_meta":{"io.modelcontextprotocol/subscriptionId":"pagewire:` + rest[:end] + `"}` + rest[end:]
	}
}

func (c *conversation) line(line string) {
	h := c.host
	word, rest, _ := strings.Cut(line, " ")
	id := func(s string) view.ID { return view.ID(c.Number(s)) }
	if from, ok := strings.CutSuffix(word, ">"); ok {
		taken := false
		if from == "S" {
			taken = h.FromServer(c.now, message(rest))
		} else {
			taken = h.Receive(c.now, id(from), message(rest))
		}
		if !taken {
			c.Say("not taken")
		}
		return
	}
	switch word {
	case "open":
		if err := h.Open(c.now, id(rest)); err != nil {
			c.Say("error: %v", err)
		}
	case "hello":
		// hello VIEW: the handshake.
		h.Receive(c.now, id(rest),
			message(`{"id":0,"method":"ui/initialize","params":{"appCapabilities":{},"appInfo":{"name":"V","version":"1"},"protocolVersion":"2026-01-26"}}`))
		h.Receive(c.now, id(rest), message(`{"method":"ui/notifications/initialized"}`))
	case "close":
		h.Close(c.now, id(rest))
	case "teardown":
		h.Teardown(c.now, id(rest))
	case "learn":
		h.Learn(c.now, rest)
	case "lost":
		h.Lost(c.now)
	case "back":
		era := view.Legacy
		if rest == "modern" {
			era = view.Modern
		}
		h.Back(c.now, era)
	case "at":
		n := c.Number(rest)
		for {
			at, ok := h.Deadline()
			if !ok || at > bridge.Time(n) {
				break
			}
			if at <= c.now-10_000 {
				c.T.Fatalf("a deadline that never passes: %d", at)
			}
			c.now = max(c.now, at)
			c.Say("(%d)", c.now)
			h.Tick(c.now)
		}
		c.now = bridge.Time(n)
	case "stats":
		s := h.Stats()
		c.Say("views %d subscriptions %d watched %d upstream %d streams %d pending %d known %d", s.Views,
			s.Subscriptions, s.Watched, s.Upstream, s.Streams, s.Pending, s.Known)
	default:
		c.T.Fatalf("unknown line %q", line)
	}
}

// closing is a Home that closes the second View when the first gets a message.
type closing struct{ host *view.Host }

func (c *closing) ToView(id view.ID, _ bridge.Message) {
	if id == 1 {
		c.host.Close(0, 2)
	}
}

func (*closing) ToServer([]byte) {}

// Each View waits for the server's list. The first answer makes the home close the other View.
func TestViewClosedWithinAnAnswer(t *testing.T) {
	home := &closing{}
	home.host = view.New(view.Options{}, home)
	for id := range view.ID(2) {
		if err := home.host.Open(0, id+1); err != nil {
			t.Fatal(err)
		}
		home.host.Receive(0, id+1, message(`{"id":1,"method":"resources/subscribe","params":{"uri":"data://a"}}`))
	}
	home.host.FromServer(0, message(`{"id":"pagewire:1","result":{"resources":[]}}`))
	if s := home.host.Stats(); s.Views != 1 || s.Pending != 0 {
		t.Errorf("%+v", s)
	}
}

func TestCapabilitiesSayWhatTheLimitIs(t *testing.T) {
	for max, want := range map[int]string{
		0: `{"serverResources":{"subscribe":true,"maxSubscriptions":10},"experimental":{"io.github.pagewire/resourceSubscriptions":{"maxSubscriptions":10}}}`,
		3: `{"serverResources":{"subscribe":true,"maxSubscriptions":3},"experimental":{"io.github.pagewire/resourceSubscriptions":{"maxSubscriptions":3}}}`,
	} {
		if got := view.New(view.Options{MaxSubscriptions: max}, nil).Capabilities(); got != want {
			t.Errorf("got %s", got)
		}
	}
}

func TestStatsAsJSONLeaveNothingOut(t *testing.T) {
	want := view.Stats{Views: 1, Subscriptions: 2, Watched: 3, Upstream: 4, Streams: 5, Pending: 6, Known: 7,
		Updates: 8, Reads: 9, Lists: 10, Subscribes: 11, Unsubscribes: 12, Listens: 13, Cancels: 14}
	var got view.Stats
	if err := json.Unmarshal([]byte(want.JSON()), &got); err != nil || got != want {
		t.Errorf("%v: %+v from %s", err, got, want.JSON())
	}
}
