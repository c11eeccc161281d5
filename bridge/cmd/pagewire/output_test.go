package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// hostile has characters upon which a terminal acts: C0, DEL, C1, bytes that are no text, overrides and isolates.
const hostile = "a\x1b]0;pwned\x07\x1b[2J\x00\x08\x7f\u009b31m\u0085\u202e\u2066\u200f\ufeff\xff\xc2b"

// No way of output lets a text act upon a terminal.
func TestNothingActsUponATerminal(t *testing.T) {
	asJSON := testkit.Must(json.Marshal(hostile))(t)
	var text, line, more strings.Builder
	for to, what := range map[*strings.Builder]string{&text: hostile + "\n", &line: string(asJSON),
		&more: "fine, é𝄞 \U000e0001\n"} {
		if n, err := cli.Visible(to).Write([]byte(what)); n != len(what) || err != nil {
			t.Errorf("it says that it has written %d of %d, %v", n, len(what), err)
		}
	}
	for name, got := range map[string]string{"plain": cli.Plain(hostile), "harmless": cli.Harmless(hostile),
		"visible": text.String(), "visible JSON": line.String()} {
		for _, r := range got {
			if cli.Acts(r) && r != '\n' && r != '\t' {
				t.Errorf("%s lets %U through: %q", name, r, got)
			}
		}
		if !strings.HasPrefix(strings.TrimPrefix(got, `"`), "a") || !strings.HasSuffix(strings.Trim(got, "\"\n"), "b") {
			t.Errorf("%s loses text: %q", name, got)
		}
	}
	var before, after string
	if json.Unmarshal(asJSON, &before) != nil || json.Unmarshal([]byte(line.String()), &after) != nil ||
		before != after {
		t.Errorf("JSON does not mean the same: %q and %q", before, after)
	}
	if got := more.String(); got != "fine, é𝄞 \\udb40\\udc01\n" {
		t.Errorf("of what is fine there is %q", got)
	}
}

// An error may quote another program, for example a squatter's status line.
func TestErrorsOfOthers(t *testing.T) {
	_, _, status, stderr := captured(t, errorString(hostile), "--log-level", "error")
	if status != exitFailed || strings.ContainsAny(stderr, "\x1b\x07\x7f\u009b\u202e") ||
		!strings.HasPrefix(stderr, `pagewire: a\u001b]0;pwned`) {
		t.Errorf("status %d, %q", status, stderr)
	}
}

type errorString string

func (e errorString) Error() string { return string(e) }

// JSON keeps C1 controls and overrides of direction as they are, and a terminal acts upon them: U+009B begins an escape
// sequence as ESC [ does.
func TestNoJSONActsUponATerminal(t *testing.T) {
	const text = "\u009b2J\u009d0;pwned\u009c\u202e\x7f"
	r := start(t, "", text)
	squatter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		testkit.OK(t, json.NewEncoder(w).Encode(map[string]string{"Browser": text}))
	}))
	defer squatter.Close()
	for _, args := range [][]string{{"read", cart, "--json"}, {"ls", "--json"}, {"doctor", "--json", "--chrome", squatter.URL}} {
		_, out, stderr := r.command(args...)
		if !json.Valid([]byte(out)) || args[0] != "ls" && !strings.Contains(out, "2J") {
			t.Errorf("%q: %q, %s", args, out, stderr)
		}
		for _, c := range out {
			if cli.Acts(c) && c != '\n' {
				t.Errorf("%q lets %U through: %.300q", args, c, out)
				break
			}
		}
	}
}

// Titles and addresses of tabs that offer nothing are a site's words, too. Only a terminal gets them: agents run commands.
func TestTabsThatOfferNothing(t *testing.T) {
	var out strings.Builder
	printTabs(&out, true, nil)
	printTabs(&out, false, nil)
	if out.Len() > 0 {
		t.Errorf("without tabs it says %q", out.String())
	}
	tabs := []serve.Tab{{Title: hostile, URL: "https://a.example/\u202e"}, {Title: "Run 4821", URL: "https://ci.example/"}}
	printTabs(&out, false, tabs)
	if want := "pagewire: open tabs that offer agents nothing: 2; on a terminal this says which\n"; out.String() != want {
		t.Errorf("without a terminal it says %q", out.String())
	}
	out.Reset()
	printTabs(&out, true, tabs)
	for _, c := range out.String() {
		if cli.Acts(c) && c != '\n' {
			t.Errorf("it lets %U through: %q", c, out.String())
		}
	}
	if !strings.Contains(out.String(), "--shown ORIGIN") || !strings.HasSuffix(out.String(), "\n  https://ci.example/  Run 4821\n") {
		t.Errorf("it says %q", out.String())
	}
}
