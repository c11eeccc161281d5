package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
	"github.com/pagewire/pagewire/bridge/pages/cdp"
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
	printTabs(&out, true, nil, 80)
	printTabs(&out, false, nil, 80)
	if out.Len() > 0 {
		t.Errorf("without tabs it says %q", out.String())
	}
	tabs := []serve.Tab{{Title: hostile, URL: "https://a.example/\u202e"}, {Title: "Run 4821", URL: "https://ci.example/"}}
	printTabs(&out, false, tabs, 80)
	if want := "pagewire: open tabs that offer agents nothing: 2; on a terminal this says which\n"; out.String() != want {
		t.Errorf("without a terminal it says %q", out.String())
	}
	out.Reset()
	printTabs(&out, true, tabs, 80)
	for _, c := range out.String() {
		if cli.Acts(c) && c != '\n' {
			t.Errorf("it lets %U through: %q", c, out.String())
		}
	}
	if !strings.Contains(out.String(), "--shown ORIGIN") || !strings.HasSuffix(out.String(), "\n  https://ci.example/  Run 4821\n") {
		t.Errorf("it says %q", out.String())
	}
}

// A watch on a terminal cuts URIs and differences to its width, and no numbers.
func TestWatchFitsTheTerminal(t *testing.T) {
	long := "https://shop.example/" + strings.Repeat("orders/", 20)
	var out strings.Builder
	for _, c := range []change{{URI: long, Event: "read", Size: 12345}, {URI: long, Event: "error", Error: "gone"},
		{URI: long, Event: "updated", Age: 1200, Size: 12345, Rate: 0.3, Diff: "-a\n+" + strings.Repeat("漢", 60) + "\n"}} {
		out.Reset()
		if err := printChange(&out, c, false, 80); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); n > 80 || n < 3 {
				t.Errorf("%s: %q has %d columns", c.Event, line, n)
			}
		}
		if want := map[string]string{"read": "orders/  12,345 bytes\n", "error": "orders/  gone\n",
			"updated": "orders/  +1.2 s  12,345 bytes (+0)  0.3/s\n"}[c.Event]; !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %q", want, out.String())
		}
	}
}

// --output writes a result as a pipe would get it, whole or not at all, and loses neither a file nor a tool's result.
func TestOutputIntoAFile(t *testing.T) {
	r := start(t, "", "one")
	calls := 0
	r.page.SetTool("pay", testkit.Tool{Run: func(context.Context, json.RawMessage, func(map[string]any)) any {
		calls++
		return map[string]any{"content": []map[string]string{{"type": "text", "text": "paid"}}, "isError": calls > 1}
	}})
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	holds := func(name, want string) {
		t.Helper()
		if text, err := os.ReadFile(file(name)); string(text) != want {
			t.Errorf("%s has %q, %v; want %q", name, text, err, want)
		}
	}
	for _, args := range [][]string{{"ls"}, {"ls", "--json"}, {"tools"}, {"tools", "--json"}, {"read", cart}, {"read", image},
		{"read", cart, "--json"}, {"version"}, {"version", "--json"}, {"call", "list_page_resources"}} {
		name := strings.ReplaceAll(strings.Join(args, " "), "/", "-")
		if args[0] != "version" {
			args = append(args, "--hub", r.addr)
		}
		_, want, _ := run(args...)
		if status, out, errs := run(append(args, "-o", file(name))...); status != exitDone || out != "" {
			t.Errorf("%q: status %d, %q, %s", args, status, out, errs)
		}
		holds(name, want)
		if status, _, errs := run(append(args, "--output", file(name))...); status != exitFailed ||
			!strings.Contains(errs, "already exists\npagewire: nothing was written; --force replaces it\n") {
			t.Errorf("%q: status %d, %s", args, status, errs)
		}
	}
	holds("read "+strings.ReplaceAll(cart, "/", "-"), "one")
	testkit.OK(t, os.WriteFile(file("old"), []byte("old"), 0o640), os.Symlink("old", file("link")))
	if status, _, errs := r.command("read", cart, "-o", file("link"), "--force"); status != exitDone {
		t.Errorf("status %d, %s", status, errs)
	}
	holds("old", "one") // behind the link, and with its permissions
	if info := testkit.Must(os.Lstat(file("old")))(t); info.Mode() != 0o640 {
		t.Errorf("its mode is %v", info.Mode())
	}
	if status, out, _ := run("version", "-o", "-"); status != exitDone || !strings.HasPrefix(out, "pagewire ") {
		t.Errorf("-o -: status %d, %q", status, out)
	}
	testkit.OK(t, os.WriteFile(file("vast"), nil, 0o600), os.Truncate(file("vast"), 1<<40))
	if status, _, errs := run("version", "-o", file("vast"), "--force"); status != exitFailed || !strings.Contains(errs, "vast is larger than 256 MiB\n") {
		t.Errorf("status %d, %s", status, errs)
	}
	testkit.OK(t, os.Remove(file("vast")))
	// A failure leaves the file as it is.
	if status, _, _ := r.command("read", "https://shop.example/none", "-o", file("old"), "--force"); status != exitFailed {
		t.Errorf("status %d", status)
	}
	holds("old", "one")
	// A tool does not run if its result has no place, and a result that cannot be written is printed.
	if status, _, _ := r.command("call", "pay", "-o", file("old")); status != exitFailed || calls != 0 {
		t.Errorf("status %d after %d calls", status, calls)
	}
	if status, _, errs := r.command("call", "pay", "-o", os.DevNull, "--force"); status != exitFailed || calls != 0 {
		t.Errorf("status %d after %d calls, %s", status, calls, errs)
	}
	if status, _, _ := r.command("call", "pay", "-o", file("paid")); status != exitDone || calls != 1 {
		t.Errorf("status %d after %d calls", status, calls)
	}
	holds("paid", "paid\n")
	if status, out, _ := r.command("call", "pay", "-o", file("failed")); status != exitFailed || out != "" {
		t.Errorf("status %d, %q", status, out)
	}
	holds("failed", "paid\n") // a result that says what failed is a result
	if status, out, _ := r.command("doctor", "-o", file("doctor"), "--chrome", "http://"+testkit.Addr(t)); status != exitFailed || out != "" ||
		!strings.Contains(string(testkit.Must(os.ReadFile(file("doctor")))(t)), "fail  debugging") {
		t.Errorf("doctor: status %d, %q", status, out)
	}
	if all := testkit.Must(os.ReadDir(dir))(t); slices.ContainsFunc(all, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }) {
		t.Errorf("temporary files are left: %v", all)
	}
}

// JSON has the members that the manual names, and no others.
func TestJSONIsAsDocumented(t *testing.T) {
	r := start(t, "", "one")
	page := string(testkit.Must(os.ReadFile(reference))(t))
	_, page, _ = strings.Cut(page, "What `--json` prints:\n")
	page, _, _ = strings.Cut(page, "\n\nOther commands")
	named := func(command string) (members []string) {
		for item := range strings.FieldsFuncSeq(page, func(r rune) bool { return r == ';' || r == '*' }) {
			name, rest, _ := strings.Cut(item, ": ")
			if strings.Contains(name, "`"+command+"`") {
				for i, word := range strings.Split(rest, "`") {
					if i%2 == 1 {
						members = append(members, word)
					}
				}
			}
		}
		return members
	}
	for _, args := range [][]string{{"ls", "--hub", r.addr}, {"changes", "--hub", r.addr}, {"doctor", "--hub", r.addr},
		{"config", "codex"}, {"version"}} {
		_, out, errs := run(append(args, "--json")...)
		var is any
		if err := json.Unmarshal([]byte(out), &is); err != nil && args[0] != "changes" { // no agent has started this test
			t.Errorf("%q: %q, %s", args, out, errs)
		}
		found := map[string]bool{}
		var note func(any)
		note = func(v any) {
			switch v := v.(type) {
			case []any:
				for _, of := range v {
					note(of)
				}
			case map[string]any:
				for name := range v {
					found[name] = true
				}
			}
		}
		note(is)
		for name := range found {
			if !slices.Contains(named(args[0]), name) {
				t.Errorf("%s: the manual names %q, and not %s", args[0], named(args[0]), name)
			}
		}
		if len(found) < len(named(args[0]))/2 {
			t.Errorf("%s: %v of %q", args[0], found, named(args[0]))
		}
	}
	types := map[string]reflect.Type{"ls": reflect.TypeFor[listed](), "watch": reflect.TypeFor[change](), "doctor": reflect.TypeFor[finding](),
		"pick": reflect.TypeFor[cdp.Picked]()}
	for command, of := range types {
		var want []string
		for i := range of.NumField() {
			if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name != "" {
				want = append(want, name)
			}
		}
		if got := named(command); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: the manual names %q, and JSON has %q", command, got, want)
		}
	}
}

// Each command that prints a result prints JSON, too.
func TestJSONEverywhere(t *testing.T) {
	prints := map[string]bool{"serve": false, "node": false, "native-host": false, "daemon": false, "setup": false}
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		wants, is := prints[c.Name()]
		if wants = wants || !is; c.HasSubCommands() || c.Name() == "help" || c.HasParent() && c.Parent().Name() == "completion" {
			wants = false
		}
		if has := c.Flags().Lookup("json") != nil; has != wants {
			t.Errorf("%s: --json is there: %v", c.CommandPath(), has)
		}
		for _, below := range c.Commands() {
			check(below)
		}
	}
	check(commands())
	for _, args := range [][]string{{"config", "cursor", "--write", "--json"}, {"config", "cursor", "--remove", "--json"},
		{"config", "cursor", "--remove", "--json"}, {"extension", "install", "--user-data-dir", t.TempDir(), "--json"}} {
		if args[1] == "cursor" && args[2] == "--write" {
			atHome(t)
		}
		_, out, errs := run(args...)
		var paths []string
		if err := json.Unmarshal([]byte(out), &paths); err != nil {
			t.Errorf("%q: %q, %s", args, out, errs)
		}
	}
}

// A list of several tabs is in their order. A page's title may have dashes, and two frames of a tab are two pages.
func TestListByTab(t *testing.T) {
	var got strings.Builder
	for _, row := range byTab([]listed{
		{URI: "https://b.example/x", Title: "X - Inbox - Mail (tab 2 of Chrome, profile Work - home, b.example)", Tab: 2},
		{URI: "https://a.example/y", Title: "Y (new) - Shop (tab 1, a.example)", Tab: 1},
		{URI: "https://c.example/z", Title: "Z - Frame (tab 1, c.example)", Tab: 1},
		{URI: "https://a.example/{id}", Title: "W - Shop (tab 1, a.example)", Tab: 1, Template: true},
		{URI: "https://d.example/n", Name: "n", Tab: 3},
	}) {
		got.WriteString(strings.Join(row, "|") + "\n")
	}
	if want := "Frame (tab 1, c.example)\n  https://c.example/z|Z\nShop (tab 1, a.example)\n  https://a.example/y|Y (new)\n" +
		"  https://a.example/{id}|W\nMail (tab 2 of Chrome, profile Work - home, b.example)\n  https://b.example/x|X - Inbox\n" +
		"\n  https://d.example/n|n\n"; got.String() != want {
		t.Errorf("it prints\n%s", got.String())
	}
}
