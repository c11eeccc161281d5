//go:build !js

// Package messages tests that demo/docs/troubleshooting.md has an entry for each message that Pagewire can print, and
// no entry of another. It has no code but tests.
//
// The boundary. A message is a text of three English words or more in the code of a program, a page, an agent's session
// or the extension, as the tables below list it: errors, warnings of the log, refusals, findings of doctor, and
// what the console and the popup say. Not messages are:
//
//   - help, names and descriptions of options, commands, tools and metrics, which have pages of their own (cli.md)
//   - lines of the log at level info or debug: what they say went as it was meant to
//   - what is content and no report: results of tools, reminders, prompts of hooks, pages of HTML, JSON
//   - errors of packages and files that are not listed: they compute, and what they say stands behind the words of who
//     called them, which are here; and panics, which are defects
//   - texts of one or two words: they name a thing, and stand behind a message
//
// A text stands in the page as in the code, with … for what is filled in.
package messages

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// update: go test ./demo/messages -update, after a text of the code was reworded. Read what it logs.
var update = flag.Bool("update", false, "give entries whose message was reworded its new text; new ones are named")

const (
	root = "../.."
	page = root + "/demo/docs/troubleshooting.md"
)

// programs are the packages whose texts reach a person or an agent.
var programs = strings.Fields(`
	bridge bridge/link bridge/view bridge/cmd/pagewire bridge/cmd/pagewire-node
	bridge/gateway bridge/gateway/access bridge/gateway/agents bridge/gateway/agents/hook bridge/gateway/assets
	bridge/gateway/browser bridge/gateway/browser/keeper bridge/gateway/hub bridge/gateway/inspect bridge/gateway/live
	bridge/gateway/node bridge/gateway/pages/cdp bridge/gateway/pages/extension bridge/gateway/pages/socket
	bridge/gateway/tools bridge/gateway/tools/own
	bridge/gateway/fleet bridge/gateway/fleet/bus bridge/gateway/fleet/dial bridge/gateway/fleet/front
	bridge/gateway/fleet/process bridge/gateway/fleet/relay bridge/gateway/fleet/tickets
	bridge/gateway/internal/secret bridge/gateway/internal/userdir bridge/gateway/internal/wsconn`)

// notScripts are the folders of js/ that say nothing to anybody who uses Pagewire.
var notScripts = map[string]string{
	"build":        "what makes Pagewire",
	"inspector":    "a page by itself, which says what it shows",
	"node_modules": "others'",
	"test":         "tests",
}

// notFiles are files of programs and scripts whose texts are no messages, each with the reason.
var notFiles = map[string]string{
	"bridge/descriptor.go":                            "reasons behind: a resource could not be offered",
	"bridge/cmd/pagewire/jsonc.go":                    "where in a client's file the mistake is; behind: mend the file",
	"bridge/cmd/pagewire/toml.go":                     "where in a client's file the mistake is; behind: mend the file",
	"bridge/gateway/prompt.go":                        "what hooks add to a prompt is content",
	"bridge/gateway/agents/hook/ancestry.go":          "names of shells",
	"bridge/gateway/browser/keeper/launch_windows.go": "behind: launch a browser",
	"bridge/gateway/hub/message.go":                   "reasons behind: refused a joiner",
	"bridge/gateway/inspect/metrics.go":               "help of metrics",
	"bridge/gateway/tools/own/describe.go":            "descriptions of tools",
	"bridge/gateway/tools/own/remind.go":              "reminders are content",
	"bridge/gateway/tools/claimed.go":                 "descriptions of tools",
	"js/page/idl.gen.ts":                              "names of types",
	"js/page/resourcetools.ts":                        "descriptions of tools",
}

// notMessages are texts that look like messages and are none.
var notMessages = []string{
	"http https ws wss",
	"unsigned long long",                                                             // a type
	"page: no origin", "agent: no token", "agent: reads nothing", "ticket: too many", // labels of a metric
	"event: message data:", "id: … event: message data:", "const pagewire = …; const changes = …; const watch = …;",
	"changed in open pages (page data, not instructions):", "bytes, which are not shown: …", // contents
	"[tool of the page … at …, tab …]", "pagewire … commit … toolchain …/…",
	"A keeper of Pagewire has made this directory, and removes it. Process:",
	"Session with given id not found.", // as the browser says it
	// parts of sentences that stand here as a whole
	"of a launched browser", "of this node", "of this user", "resource or tool", "resources and tools", "the hub of …",
	"the page's Pagewire", "they have … bytes", "until the browser is closed",
}

// notBeginnings are those of texts that are pages, policies, prompts and data.
var notBeginnings = []string{
	"<!doctype",
	"default-src ",
	"{\"",
	"\"progress\"",
	"Live state of the web pages",
	"Call each tool of the MCP server",
	"// Written by pagewire config",
}

// silentFields are of composite values whose texts describe.
var silentFields = map[string]bool{"Use": true, "Short": true, "Long": true, "Example": true, "Description": true}

// silentCalls take texts that are no messages: defects, the log below warnings, options' descriptions.
var silentCalls = regexp.MustCompile(`^(panic|Debug|Info|MustCompile|MarkHidden|Var|VarP|VarPF|Func|` +
	`(String|Bool|Int|Int64|Uint|Float64|Duration|StringArray|StringSlice)(Var)?P?)$`)

func silent(callee string) bool { return silentCalls.MatchString(callee) }

// said is all that Pagewire can print.
func said(t *testing.T) []message {
	t.Helper()
	var all []message
	for _, dir := range programs {
		all = append(all, fromGo(t, root, dir)...)
	}
	entries, err := os.ReadDir(filepath.Join(root, "js"))
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, entry := range entries {
		if entry.IsDir() && notScripts[entry.Name()] == "" {
			folders = append(folders, "js/"+entry.Name())
		}
	}
	all = append(all, fromScripts(t, folders)...)
	return unique(slices.DeleteFunc(all, func(m message) bool {
		file, _, _ := strings.Cut(m.at, ":")
		return notFiles[file] != "" || slices.Contains(notMessages, m.text) ||
			slices.ContainsFunc(notBeginnings, func(b string) bool { return strings.HasPrefix(m.text, b) })
	}))
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// explained are the messages of the page: what stands as code in the first cell of a row. It fails rows that say too
// little.
func explained(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 3 || len(cells[1]) < 10 || len(cells[2]) < 5 {
			t.Errorf("a row is: message | what it means | what to do. This one is not: %.100s", line)
			continue
		}
		for _, span := range codeSpan.FindAllStringSubmatch(cells[0], -1) {
			if found[span[1]] {
				t.Errorf("the page has two entries of: %s", span[1])
			}
			found[span[1]] = true
		}
	}
	return found
}

func TestEachMessageIsExplained(t *testing.T) {
	all, known := said(t), explained(t)
	if len(all) < 300 {
		t.Errorf("%d messages in the code: the test sees nothing", len(all))
	}
	var missing []message
	for _, m := range all {
		if !known[m.text] {
			missing = append(missing, m)
		}
		delete(known, m.text)
	}
	if *update {
		missing = reword(t, missing, known)
	}
	for _, m := range missing {
		t.Errorf("troubleshooting.md lacks the message of %s:\n| `%s` |  |  |", m.at, m.text)
	}
	for text := range known {
		t.Errorf("troubleshooting.md explains what is not in the code: %s", text)
	}
	t.Logf("%d messages", len(all))
}

// reword gives entries whose message is no longer in the code, known, the most similar of those that the page lacks,
// and returns the others of these.
func reword(t *testing.T, missing []message, known map[string]bool) (left []message) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range missing {
		best, old := 0.4, ""
		for _, candidate := range slices.Sorted(maps.Keys(known)) {
			if s := similar(candidate, m.text); s > best {
				best, old = s, candidate
			}
		}
		if old == "" {
			left = append(left, m)
			continue
		}
		t.Logf("reworded: %s\n      to: %s", old, m.text)
		text = bytes.ReplaceAll(text, []byte("`"+old+"`"), []byte("`"+m.text+"`"))
		delete(known, old)
	}
	if err := os.WriteFile(page, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return left
}

// similar is how many words two texts share, of all that they have.
func similar(a, b string) float64 {
	inA := map[string]bool{}
	for _, w := range strings.Fields(a) {
		inA[w] = true
	}
	shared, all := 0, len(inA)
	inB := map[string]bool{}
	for _, w := range strings.Fields(b) {
		if inB[w] {
			continue
		}
		inB[w] = true
		if inA[w] {
			shared++
		} else {
			all++
		}
	}
	return float64(shared) / float64(all)
}

// A text that is put together, filled in or a table's entry is found; what describes an option or a defect is not.
func TestWhatIsAMessage(t *testing.T) {
	dir := t.TempDir()
	code := "package p\n" + strings.Join([]string{
		"const limit = `8`", "var reasons = map[int]string{1: `the page has gone`}",
		"func f(x string) error {", "flags.StringVar(&x, `a`, ``, `an option that says so`)",
		"panic(`this is a defect`)",
		"log.Info(`all is well here`)", "log.Warn(`all is not well`, `key`, x)",
		"return fmt.Errorf(`%q is no such `+`thing; the limit is `+limit+x+`: %w`, x, err)", "}"}, "\n")
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range fromGo(t, dir, ".") {
		got = append(got, m.text)
	}
	want := []string{"the page has gone", "all is not well", "… is no such thing; the limit is 8…: …"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
