package agents

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// mutate changes a message in one to four places: it replaces a byte, removes or doubles a part, or inserts a text that
// is hard for a parser.
func mutate(r *rand.Rand, text string) string {
	b := []byte(text)
	bits := []string{`"`, `{`, `}`, `[`, `]`, `,`, `:`, `null`, `-1`, `1e999`, `"\u0000"`, "\x00", "\xff", `\ud800`,
		`"id"`, `"method"`, strings.Repeat("[", 100), `{"id":{"id":`}
	for range 1 + r.IntN(4) {
		if len(b) == 0 {
			break
		}
		from := r.IntN(len(b))
		to := min(len(b), from+r.IntN(20))
		part := string(b[from:to])
		switch r.IntN(4) {
		case 0:
			b[from] = byte(r.IntN(256))
		case 1:
			b = append(b[:from:from], b[to:]...)
		case 2:
			b = append(b[:from:from], append([]byte(bits[r.IntN(len(bits))]), b[from:]...)...)
		default:
			b = append(b[:to:to], append([]byte(part), b[to:]...)...)
		}
	}
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(string(b))
}

// originals are valid messages of both eras.
var originals = []string{
	call("1", "resources/read", `"uri":"`+origin+`/doc"`), call(`"x"`, "resources/list", `"cursor":"x"`),
	listen("2", origin+"/doc"),
	call("3", "tools/call", `"name":"read_page_resource","arguments":{"uri":"`+origin+`/doc"}`),
	call("4", "server/discover", ""),
	initialize("m"), legacyCall("5", "resources/subscribe", `"uri":"`+origin+`/doc"`),
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
}

// After any input on stdio a valid request is answered, and each line of the output is a JSON message.
func TestMutationsOnStdio(t *testing.T) {
	p := open(t)
	c := stdio(t, t.Context(), p.g)
	r := rand.New(rand.NewPCG(14, 1))
	const n = 5000
	go func() {
		for i := range n {
			text := mutate(r, originals[i%len(originals)])
			if _, err := io.WriteString(c.in, text+"\n"); err != nil {
				return
			}
		}
		io.WriteString(c.in, call(`"last"`, "resources/read", `"uri":"`+origin+`/doc"`)+"\n")
	}()
	for {
		if m := c.next(); string(m.ID) == `"last"` { // next fails the test if the line is not a message
			if m.Result == nil || m.Result.Contents[0].Text != "one" {
				t.Errorf("the last read is answered %+v", m)
			}
			break
		}
	}
}

// Over HTTP each gets an answer below status 500, with JSON or an event stream.
func TestMutationsOverHTTP(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	r := rand.New(rand.NewPCG(14, 2))
	for i := range 1000 {
		text := mutate(r, originals[i%len(originals)])
		request, err := http.NewRequestWithContext(t.Context(), "POST", s.server.URL+"/mcp", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", "Mcp-Method": "resources/list",
			"Mcp-Protocol-Version": []string{"", "2025-11-25", "2026-07-28", "x"}[r.IntN(4)]} {
			if value != "" {
				request.Header.Set(name, value)
			}
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") { // a listen goes on
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode >= 500 || len(body) > 0 && !json.Valid(body) {
				t.Errorf("%q is answered HTTP %d %q, %v", text, answer.StatusCode, body, err)
			}
		}
		answer.Body.Close()
	}
	if m := s.ask(call(`"last"`, "resources/read", `"uri":"`+origin+`/doc"`)).want(200, 0); m.Result == nil {
		t.Error("the last read has no result")
	}
	testkit.Eventually(t, "no request is left", func() bool {
		return s.h.shares[ofRequests].Held() == 0
	})
}
