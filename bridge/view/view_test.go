package view_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/view"
)

var update = flag.Bool("update", false, "rewrite the conversations in testdata with what the Host says now")

// TestConversations plays the conversations in testdata, which tell one rule or story each: prose, then what happens to
// a Host, one line each, and what came of it, indented. See testdata/README.md for the words.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { converse(t, file) })
	}
}

// converse plays one file.
func converse(t *testing.T, file string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var o view.Options
	for i, f := range archive.Files {
		switch f.Name {
		case "options":
			setOptions(t, &o, string(f.Data))
		case "conversation":
			c := &conversation{t: t}
			c.host = view.New(o, c)
			got := c.play(string(f.Data))
			if *update {
				archive.Files[i].Data = []byte(got)
			} else if got != string(f.Data) {
				t.Errorf("the Host says something else (-update rewrites %s):\n%s", file,
					firstDifference(string(f.Data), got))
			}
		default:
			t.Fatalf("unknown section %q", f.Name)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range w {
		if i >= len(g) || w[i] != g[i] {
			g = append(g, "(end)")
			return fmt.Sprintf("line %d\n  want %s\n  got  %s", i+1, w[i], g[min(i, len(g)-1)])
		}
	}
	return "extra line: " + g[len(w)]
}

func setOptions(t *testing.T, o *view.Options, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.Atoi(value)
		switch name {
		case "Modern":
			o.Era = view.Modern
		case "NoOverlap":
			o.NoOverlap = true
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
			t.Fatalf("unknown option %q", line)
		}
	}
}

// A conversation is a Host, and the Home that writes down what it sends.
type conversation struct {
	t    *testing.T
	host *view.Host
	now  bridge.Time
	out  strings.Builder
}

func (c *conversation) say(format string, args ...any) {
	fmt.Fprintf(&c.out, "    "+format+"\n", args...)
}

func (c *conversation) ToView(id view.ID, m bridge.Message) {
	c.say("%d< %s", id, short(c.t, m.AppendTo(nil)))
}

func (c *conversation) ToServer(text []byte) { c.say("S< %s", short(c.t, text)) }

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"pagewire","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}`

// short is a message as the files have it.
func short(t *testing.T, text []byte) []byte {
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
	// STREAM n stands for the _meta of what comes on the Host's n-th request, a listen.
	for {
		before, rest, ok := strings.Cut(short, "STREAM ")
		if !ok {
			return []byte(short)
		}
		end := strings.IndexAny(rest, ",}")
		short = before + `"_meta":{"io.modelcontextprotocol/subscriptionId":"pagewire:` + rest[:end] + `"}` + rest[end:]
	}
}

func (c *conversation) play(script string) string {
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "    ") {
			continue // what came of it the last time
		}
		c.out.WriteString(line)
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		c.line(line)
	}
	return c.out.String()
}

func (c *conversation) line(line string) {
	h := c.host
	word, rest, _ := strings.Cut(line, " ")
	id := func(s string) view.ID {
		n, err := strconv.Atoi(s)
		if err != nil {
			c.t.Fatalf("not a number in %q", line)
		}
		return view.ID(n)
	}
	if from, ok := strings.CutSuffix(word, ">"); ok {
		taken := false
		if from == "S" {
			taken = h.FromServer(c.now, message(rest))
		} else {
			taken = h.Receive(c.now, id(from), message(rest))
		}
		if !taken {
			c.say("not taken")
		}
		return
	}
	switch word {
	case "open":
		if err := h.Open(c.now, id(rest)); err != nil {
			c.say("error: %v", err)
		}
	case "hello":
		// hello VIEW: the handshake, of which only the fact matters here.
		h.Receive(c.now, id(rest),
			message(`{"id":0,"method":"ui/initialize","params":{"appCapabilities":{},"appInfo":{"name":"V","version":"1"},"protocolVersion":"2026-01-26"}}`))
		h.Receive(c.now, id(rest), message(`{"method":"ui/notifications/initialized"}`))
	case "close":
		h.Close(c.now, id(rest))
	case "teardown":
		h.Teardown(c.now, id(rest))
	case "block":
		h.Writable(c.now, id(rest), false)
	case "unblock":
		h.Writable(c.now, id(rest), true)
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
		n, _ := strconv.Atoi(rest)
		for {
			at, ok := h.Deadline()
			if !ok || at > bridge.Time(n) {
				break
			}
			if at <= c.now-10_000 {
				c.t.Fatalf("a deadline that never passes: %d", at)
			}
			c.now = max(c.now, at)
			c.say("(%d)", c.now)
			h.Tick(c.now)
		}
		c.now = bridge.Time(n)
	case "stats":
		s := h.Stats()
		c.say("views %d subscriptions %d watched %d upstream %d streams %d pending %d known %d", s.Views,
			s.Subscriptions, s.Watched, s.Upstream, s.Streams, s.Pending, s.Known)
	default:
		c.t.Fatalf("unknown line %q", line)
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
