//go:build !js

package view_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/view"
)

// upstream has the proposal for the MCP Apps specification. Its README explains the words of a transcript.
const upstream = "../../idl/upstream/ext-apps"

// A transcript is one conformance case in JSON, for every implementation: the events at a host of Views, and the
// messages that it must send.
type transcript struct {
	About            string
	Requires         []string
	Lists            []string // the URIs in the server's resources/list
	MaxSubscriptions int
	ProtocolVersion  string // of the server
	Steps            []step
}

type step struct {
	View   view.ID
	Server string
	Is     string         // of a View: initialized, torn down, removed
	State  string         // of the server: lost, back
	Sends  map[string]any // of a View
	Gets   map[string]any
	// Message is sent or received by the server. It is sent Times times, Every ms apart; of received ones Times is the
	// bounds, [least, most].
	Message map[string]any
	Times   any
	Every   int
	Wait    int // ms
	Quiet   bool
	Why     string
}

// TestUpstreamTranscripts replays the conformance cases of the proposal on a Host.
func TestUpstreamTranscripts(t *testing.T) {
	files, err := filepath.Glob(upstream + "/conformance/*.json")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d transcripts: %v", len(files), err)
	}
	schema := readSchema(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c transcript
			decoder := json.NewDecoder(strings.NewReader(string(text)))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&c); err != nil {
				t.Fatal(err)
			}
			newReplay(t, c, schema).play()
		})
	}
}

// Each requirement of the specification has a case, or says that it has none; cases name no other requirements.
func TestUpstreamRequirementsHaveCases(t *testing.T) {
	text, err := os.ReadFile(upstream + "/resource-subscriptions.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	files, _ := filepath.Glob(upstream + "/conformance/*.json")
	for _, file := range files {
		var c transcript
		cases, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(cases, &c)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range c.Requires {
			named[r] = true
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\* \*\*([A-Z]+-\d)\*\*(.*)`).FindAllStringSubmatch(
		strings.ReplaceAll(string(text), "\n  ", " "), -1) {
		if !named[m[1]] && !strings.Contains(m[2], "(no case:") {
			t.Errorf("%s has no case", m[1])
		}
		delete(named, m[1])
	}
	for r := range named {
		t.Errorf("a case names %s, which the specification does not have", r)
	}
}

func readSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := os.ReadFile(upstream + "/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// A replay is a Host, and its messages that no step has taken yet.
type replay struct {
	t      *testing.T
	c      transcript
	schema *jsonschema.Resolved
	host   *view.Host
	now    bridge.Time
	said   map[string][]map[string]any // by receiver: "server", or a View's number
	bound  map[string]any              // values of the names that begin with $
	open   map[view.ID]bool
	at     int // the step
}

func newReplay(t *testing.T, c transcript, schema *jsonschema.Resolved) *replay {
	r := &replay{t: t, c: c, schema: schema, said: map[string][]map[string]any{}, bound: map[string]any{},
		open: map[view.ID]bool{}}
	o := view.Options{MaxSubscriptions: c.MaxSubscriptions}
	if c.ProtocolVersion == "2026-07-28" {
		o.Era = view.Modern
	}
	r.host = view.New(o, r)
	return r
}

func (r *replay) ToView(id view.ID, m bridge.Message) {
	r.says(fmt.Sprint(id), m.AppendTo(nil))
}

// ToServer answers resources/list, which the cases leave out.
func (r *replay) ToServer(text []byte) {
	m := r.decode(text)
	if m["method"] != "resources/list" {
		r.says("server", text)
		return
	}
	resources := []map[string]any{}
	for _, uri := range r.c.Lists {
		resources = append(resources, map[string]any{"uri": uri, "name": uri})
	}
	r.fromServer(map[string]any{"id": m["id"], "result": map[string]any{"resources": resources}})
}

func (r *replay) says(whom string, text []byte) {
	m := r.decode(text)
	r.valid(m)
	r.said[whom] = append(r.said[whom], m)
}

func (r *replay) decode(text []byte) (m map[string]any) {
	r.t.Helper()
	if err := json.Unmarshal(text, &m); err != nil {
		r.t.Fatalf("step %d: the host said %s: %v", r.at, text, err)
	}
	return m
}

// valid checks a message against the schema, which accepts all messages of other specifications.
func (r *replay) valid(m map[string]any) {
	r.t.Helper()
	if err := r.schema.Validate(m); err != nil {
		r.t.Errorf("step %d: %v is not valid: %v", r.at, m, err)
	}
}

func (r *replay) encode(m map[string]any) []byte {
	m["jsonrpc"] = "2.0"
	text, err := json.Marshal(r.substituted(m))
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}

// substituted replaces names by their values.
func (r *replay) substituted(v any) any {
	switch v := v.(type) {
	case map[string]any:
		all := map[string]any{}
		for key, value := range v {
			all[key] = r.substituted(value)
		}
		return all
	case string:
		if value, ok := r.bound[v]; ok {
			return value
		}
	}
	return v
}

func (r *replay) fromServer(m map[string]any) { r.host.FromServer(r.now, r.encode(m)) }

func (r *replay) play() {
	r.t.Helper()
	for i, s := range r.c.Steps {
		r.at = i + 1
		switch {
		case s.Quiet:
			r.quiet()
		case s.Wait > 0:
			r.wait(s.Wait)
		case s.Is != "":
			r.becomes(s.View, s.Is)
		case s.State == "lost":
			r.host.Lost(r.now)
		case s.State == "back":
			r.host.Back(r.now, view.Legacy)
		case s.Sends != nil:
			r.host.Receive(r.now, s.View, r.encode(s.Sends))
		case s.Gets != nil:
			r.gets(fmt.Sprint(s.View), s.Gets, s.Times)
		case s.Server == "gets":
			r.gets("server", s.Message, s.Times)
		case s.Server == "sends":
			times, _ := s.Times.(float64)
			for range max(1, int(times)) {
				r.fromServer(s.Message)
				r.wait(s.Every)
			}
		default:
			r.t.Fatalf("step %d says nothing that is known: %+v", r.at, s)
		}
	}
}

// becomes changes a View's state.
func (r *replay) becomes(id view.ID, state string) {
	switch state {
	case "initialized":
		if err := r.host.Open(r.now, id); err != nil {
			r.t.Fatal(err)
		}
		r.host.Receive(r.now, id, []byte(`{"jsonrpc":"2.0","id":0,"method":"ui/initialize","params":{}}`))
		r.host.Receive(r.now, id, []byte(`{"jsonrpc":"2.0","method":"ui/notifications/initialized"}`))
	case "torn down":
		r.host.Teardown(r.now, id)
	case "removed":
		r.host.Close(r.now, id)
	default:
		r.t.Fatalf("step %d: a View cannot be %q", r.at, state)
	}
}

// wait lets time pass, and keeps the deadlines on the way.
func (r *replay) wait(ms int) {
	until := r.now + bridge.Time(ms)
	for {
		at, ok := r.host.Deadline()
		if !ok || at > until {
			break
		}
		r.now = max(r.now, at)
		r.host.Tick(r.now)
	}
	r.now = until
}

// gets takes the next message to a receiver, which must match, or as many matching messages as times allows.
func (r *replay) gets(whom string, want map[string]any, times any) {
	r.t.Helper()
	least, most := 1, 1
	if bounds, ok := times.([]any); ok {
		least, most = int(bounds[0].(float64)), int(bounds[1].(float64))
	}
	n := 0
	for i := 0; i < len(r.said[whom]) && n < most; {
		if !r.matches(r.said[whom][i], want) {
			if most == 1 {
				break
			}
			i++
			continue
		}
		r.said[whom] = slices.Delete(r.said[whom], i, i+1)
		n++
	}
	if n < least {
		r.t.Fatalf("step %d: %s got %d times %v, want %d at least; next is %v", r.at, whom, n, want, least,
			r.said[whom])
	}
}

// matches reports whether a message has all wanted members. A name that begins with $ gets the value at its first
// match.
func (r *replay) matches(is, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := is.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range want {
			if !r.matches(object[key], value) {
				return false
			}
		}
		return true
	case string:
		if !strings.HasPrefix(want, "$") {
			return is == want
		}
		if value, ok := r.bound[want]; ok {
			return is == value
		}
		r.bound[want] = is
		return is != nil
	}
	text, _ := json.Marshal(is)
	wanted, _ := json.Marshal(want)
	return string(text) == string(wanted)
}

// quiet fails if a message is left that no step has taken.
func (r *replay) quiet() {
	r.t.Helper()
	for whom, said := range r.said {
		if len(said) > 0 {
			r.t.Fatalf("step %d: %s got %d messages besides, the first is %v", r.at, whom, len(said), said[0])
		}
	}
}

// The tests that the upstream documents name exist.
func TestUpstreamNamesTestsThatAreThere(t *testing.T) {
	var code strings.Builder
	for _, pattern := range []string{"../../e2e/*_test.go", "../view/*_test.go", "../../js/build/*_test.go"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	documents, _ := filepath.Glob("../../idl/upstream/*/*.md")
	if len(documents) < 5 {
		t.Fatalf("%d documents", len(documents))
	}
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1) {
			if !strings.Contains(code.String(), "func "+name) { // RUN= takes the beginning of a name
				t.Errorf("%s names %s, which is no test", document, name)
			}
		}
	}
}
