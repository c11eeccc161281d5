package bridge_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/testkit/script"
	"github.com/pagewire/pagewire/bridge/wire"
)

// TestConversations plays the conversations in testdata. Each file shows one rule or story: prose,
// then lines of input to the engine, each followed by its output, indented. testdata/README.md
// explains the words.
func TestConversations(t *testing.T) {
	script.Each(t, func(t *testing.T, file string) { script.Play(t, file, converse) })
}

// converse begins a conversation with an engine.
func converse(s *script.Script) func(line string) {
	c := &conversation{Script: s, told: map[bridge.CallID][]bridge.EventNote{},
		cursor: map[bridge.CallID]string{}}
	options := bridge.Options{Name: "page", Version: "1",
		Rule: bridge.Rule{Origin: "https://x.test"}}
	if asks := c.setOptions(&options); asks {
		c.engine = bridge.New(options, asking{c})
	} else {
		c.engine = bridge.New(options, c)
	}
	return c.line
}

// setOptions reads lines such as "UpdateInterval 50" or "Limits.Reads 2".
func (c *conversation) setOptions(o *bridge.Options) (asks bool) {
	c.T.Helper()
	var skills bool
	flags := map[string]*bool{"Skills": &skills, "NoSubscriptions": &o.NoSubscriptions,
		"ExposeErrors": &o.ExposeErrors, "Asks": &asks,
		"AnyURI": &o.Rule.Any, "WebURI": &o.Rule.Web, "Tools": &o.Tools,
		"UnlistedTools": &o.UnlistedTools, "Several": &o.Several,
		"Events": &o.Events}
	times := map[string]*bridge.Time{"UpdateInterval": &o.UpdateInterval,
		"ListInterval": &o.ListInterval,
		"ReadTimeout":  &o.ReadTimeout, "ToolTimeout": &o.ToolTimeout,
		"AwaitTimeout":      &o.AwaitTimeout,
		"HeartbeatInterval": &o.HeartbeatInterval}
	l := &o.Limits
	numbers := map[string]*int{"UpdateBurst": &o.UpdateBurst, "PageSize": &o.PageSize,
		"PageBytes":           &o.PageBytes,
		"Limits.MessageBytes": &l.MessageBytes, "Limits.Depth": &l.Depth,
		"Limits.URIBytes":  &l.URIBytes,
		"Limits.Resources": &l.Resources, "Limits.Ports": &l.Ports,
		"Limits.Subscriptions": &l.Subscriptions,
		"Limits.Listens":       &l.Listens, "Limits.Calls": &l.Calls, "Limits.Tools": &l.Tools,
		"Limits.ResultBytes": &l.ResultBytes, "Limits.IDBytes": &l.IDBytes,
		"Limits.UpdateRate": &l.UpdateRate,
		"Limits.Streams":    &l.Streams}
	for _, option := range c.Options {
		flag, time, number := flags[option.Name], times[option.Name], numbers[option.Name]
		switch {
		case option.Name == "Instructions":
			o.Instructions = option.Value
		case flag != nil:
			*flag = true
		case time != nil:
			*time = bridge.Time(option.Number)
		case number != nil:
			*number = option.Number
		default:
			c.T.Fatalf("unknown option %q", option.Name)
		}
	}
	if o.Rule.Any {
		o.Rule.Origin = ""
	}
	if skills {
		const uri = "skill://x/live/SKILL.md"
		o.Skills = []bridge.Skill{{URI: uri, Entry: `{"uri":"` + uri +
			`","frontmatter":{"name":"live"},"resources":[]}`,
			Contents: `[{"uri":"` + uri + `","text":"# Live"}]`}}
	}
	return asks
}

// A conversation is an engine, and the Host that writes down the engine's calls.
type conversation struct {
	*script.Script
	engine *bridge.Engine
	now    bridge.Time
	meta   []byte                               // of the next result
	told   map[bridge.CallID][]bridge.EventNote // notifications that streams have not taken
	cursor map[bridge.CallID]string             // of their last event
}

// asking is a conversation with a SubscriptionHost.
type asking struct{ *conversation }

func (c asking) Subscribe(call bridge.CallID, port bridge.PortID, uri string) {
	c.Say("subscribe? %d port %d %s", call, port, uri)
}

func (c asking) Unsubscribe(call bridge.CallID, port bridge.PortID, uri string) {
	c.Say("unsubscribe %d port %d %s", call, port, uri)
}

func (c *conversation) Send(to bridge.PortID, m bridge.Message) {
	text := m.AppendTo(nil)
	if _, err := wire.Parse(text, 100); err != nil {
		c.T.Errorf("the engine sent what is not JSON: %s: %s", err, text)
	}
	c.Say("%d< %s", to, bytes.Replace(text, []byte(`"jsonrpc":"2.0",`), nil, 1))
}

func (c *conversation) Read(call bridge.CallID, r bridge.Request) {
	line := fmt.Sprintf("read %d %s", call, r.URI)
	if r.Key != r.URI {
		line += " of " + r.Key
	}
	if r.Params != "" {
		line += " " + r.Params
	}
	if r.Port != 0 {
		line += fmt.Sprint(" for ", r.Port)
	}
	c.Say("%s", line)
}

func (c *conversation) CallTool(call bridge.CallID, t bridge.ToolCall) {
	c.Say("tool %d %s %s", call, t.Name, t.Arguments)
}

func (c *conversation) End(call bridge.CallID) { c.Say("end %d", call) }

func (c *conversation) Watched(uri string, on bool) {
	if on {
		c.Say("watched %s", uri)
	} else {
		c.Say("unwatched %s", uri)
	}
}

func (c *conversation) Events(call bridge.CallID, r bridge.EventRequest) {
	line := fmt.Sprintf("events %d %s %s %s cursor %q", call, r.Method, r.Name, r.Arguments,
		r.Cursor)
	if r.MaxAge >= 0 {
		line += fmt.Sprintf(" maxAge %d", r.MaxAge)
	}
	if r.Max > 0 {
		line += fmt.Sprintf(" max %d", r.Max)
	}
	if r.Delivery != nil {
		line += fmt.Sprintf(" delivery %s ttl %d", r.Delivery, r.TTL)
	}
	c.Say("%s", line)
}

func (c *conversation) NextEvent(call bridge.CallID) (n bridge.EventNote, ok bool) {
	list := c.told[call]
	if len(list) == 0 {
		return n, false
	}
	n, c.told[call] = list[0], list[1:]
	if cursor, ok := wire.Value("{" + string(n.Members) + "}").Get("cursor").Text(); ok {
		c.cursor[call] = cursor
	}
	return n, true
}

func (c *conversation) EventCursor(call bridge.CallID) string { return c.cursor[call] }

// eventError reads "KIND message" or "KIND data message".
func eventError(text string) *bridge.EventError {
	kind, rest, _ := strings.Cut(text, " ")
	x := &bridge.EventError{Message: rest}
	if strings.HasPrefix(rest, "{") {
		data, message, _ := strings.Cut(rest, "} ")
		x.Data, x.Message = bridge.Text(data+"}"), message
	}
	for x.Kind = 0; x.Kind.String() != kind; x.Kind++ {
	}
	return x
}

func (c *conversation) line(line string) {
	e := c.engine
	word, rest, _ := strings.Cut(line, " ")
	number := func(s string) uint32 { return uint32(c.Number(s)) }
	if n, ok := strings.CutSuffix(word, ">"); ok {
		if err := e.Receive(c.now, bridge.PortID(number(n)), message(rest)); err != nil {
			c.Say("error: %v", err)
		}
		return
	}
	first, second, _ := strings.Cut(rest, " ")
	switch word {
	case "register":
		// register URI [NAME] [JSON members]
		name, members, _ := strings.Cut(second, " ")
		if strings.HasPrefix(name, `"`) {
			name, members = "", second
		}
		descriptor := fmt.Sprintf(`{"uri":%q,"name":%q`, first, name)
		if name == "" {
			descriptor = fmt.Sprintf(`{"uri":%q,"name":%q`, first, "n")
		}
		if members != "" {
			descriptor += "," + members
		}
		r, err := bridge.DecodeResource([]byte(descriptor + "}"))
		if err == nil {
			err = e.Register(c.now, r)
		}
		if r.Mended != "" {
			c.Say("told: %s", r.Mended)
		}
		if err != nil {
			c.Say("error: %v", err)
		}
	case "perport":
		if err := e.Register(c.now,
			bridge.Resource{URI: first, Name: "n", PerPort: true}); err != nil {
			c.Say("error: %v", err)
		}
	case "unregister":
		if !e.Unregister(c.now, first) {
			c.Say("error: not registered")
		}
	case "touch":
		e.Touch(c.now, first)
	case "watched?":
		c.Say("%t", e.IsWatched(first))
	case "open":
		if err := e.Open(c.now, bridge.PortID(number(first))); err != nil {
			c.Say("error: %v", err)
		}
	case "debugging":
		e.ShowDebugging(bridge.PortID(number(first)))
	case "restrict":
		e.Restrict(bridge.PortID(number(first)),
			sightOf(func(uri string) bool { return strings.HasPrefix(uri, second) }))
	case "look":
		e.Restrict(bridge.PortID(number(first)),
			looking{func(string) bool { return true }})
	case "close":
		e.Close(c.now, bridge.PortID(number(first)))
	case "block":
		e.Writable(c.now, bridge.PortID(number(first)), false)
	case "unblock":
		e.Writable(c.now, bridge.PortID(number(first)), true)
	case "hold":
		e.Hold(c.now, bridge.PortID(number(first)), true)
	case "release":
		e.Hold(c.now, bridge.PortID(number(first)), false)
	case "forgo":
		e.ForgoSubscriptions(bridge.PortID(number(first)))
	case "proceed":
		e.Proceed(c.now, bridge.PortID(number(first)))
	case "await":
		e.Await(c.now, true)
	case "known":
		e.Await(c.now, false)
	case "meta":
		c.meta = []byte(rest)
	case "complete":
		e.Complete(c.now, bridge.CallID(number(first)),
			bridge.Result{Contents: []byte(second), Meta: c.meta})
		c.meta = nil
	case "answer":
		e.Complete(c.now, bridge.CallID(number(first)), bridge.Result{Contents: []byte(second)})
	case "refuse":
		e.Complete(c.now, bridge.CallID(number(first)), bridge.Result{Refused: eventError(second)})
	case "tell", "gap", "trouble":
		id, n := bridge.CallID(number(first)),
			bridge.EventNote{Members: []byte(second), Gap: word == "gap"}
		if word == "trouble" {
			n = bridge.EventNote{Refused: eventError(second)}
		}
		c.told[id] = append(c.told[id], n)
		e.Wake(c.now, id)
	case "terminate":
		e.Terminate(c.now, bridge.CallID(number(first)), eventError(second))
	case "allow":
		e.Complete(c.now, bridge.CallID(number(first)), bridge.Result{})
	case "notify":
		e.Notify(c.now, bridge.PortID(number(first)), second)
	case "progress":
		if p, some, err := bridge.DecodeProgress([]byte("{" + second + "}")); err == nil && some {
			e.Progress(c.now, bridge.CallID(number(first)), p)
		}
	case "tools":
		tools, err := bridge.DecodeTools([]byte(rest))
		for i := range tools {
			v, _ := wire.Parse(tools[i].JSON, 100)
			origin, _ := v.Get("origin").Text()
			tools[i].Owner = func() bridge.Owner { return bridge.Owner{Origin: origin} }
			tools[i].First = v.Get("first").True()
			tools[i].Debugging = v.Get("debugging").True()
		}
		if err == nil {
			err = e.SetTools(c.now, tools)
		}
		if err != nil {
			c.Say("error: %v", err)
		}
	case "fail":
		why, detail, _ := strings.Cut(second, " ")
		e.Complete(c.now, bridge.CallID(number(first)),
			bridge.Result{Failure: bridge.Failure(why), Detail: detail})
	case "at":
		// Time passes as at a host: every deadline on the way is kept.
		target := bridge.Time(number(first))
		for {
			at, ok := e.Deadline()
			if !ok || at > target {
				break
			}
			c.now = max(c.now, at)
			c.Say("(%d)", c.now)
			e.Tick(c.now)
		}
		c.now = target
	case "shutdown":
		e.Shutdown(c.now)
	case "initialize":
		// initialize PORT: the legacy handshake, without its messages.
		id := bridge.PortID(number(first))
		said := c.Hidden(func() {
			_ = e.Receive(c.now, id,
				message(`{"id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
			_ = e.Receive(c.now, id, message(`{"method":"notifications/initialized"}`))
		})
		if !strings.Contains(said, `"result"`) {
			c.T.Errorf("initialize failed: %s", said)
		}
	case "stats":
		s := e.Stats()
		line := fmt.Sprintf(
			"resources %d ports %d subscriptions %d listens %d calls %d watched %d unknown %d",
			s.Resources, s.Ports, s.Subscriptions, s.Listens, s.Calls, s.Watched, s.UnknownTouches)
		if s.Events > 0 {
			line += fmt.Sprintf(" streams %d events %d", s.Streams, s.Events)
		}
		c.Say("%s", line)
	default:
		c.T.Fatalf("unknown line %q", line)
	}
}

// message completes the short form of a message: it adds a missing jsonrpc. MODERN stands for the
// _meta of a modern request, and DECLARES for a _meta that also declares the extension for events.
func message(short string) []byte {
	short = strings.ReplaceAll(short, "DECLARES",
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+
			`{"extensions":{"io.modelcontextprotocol/events":{}}}}`)
	short = strings.ReplaceAll(short, "MODERN",
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`)
	if strings.HasPrefix(short, "{") && !strings.Contains(short, `"jsonrpc"`) {
		short = `{"jsonrpc":"2.0",` + short[1:]
	}
	return []byte(short)
}

// A sightOf sees an owner by its origin alone.
type sightOf func(uri string) bool

func (s sightOf) Sees(uri string) bool        { return s(uri) }
func (s sightOf) Permits(o bridge.Owner) bool { return s(o.Origin) }
func (s sightOf) HidesTools() string          { return "" }

// A looking port sees all but tools that have an owner.
type looking struct{ sightOf }

func (looking) HidesTools() string { return "They are off." }
