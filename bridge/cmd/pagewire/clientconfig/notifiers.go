package clientconfig

import (
	_ "embed"
	"strings"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
)

// A notifier makes a program put a change of a page into a request to its model, without a tool
// call. config --live writes it in addition to the server's entry. Each was verified in the request
// bodies of the published program.
type notifier struct {
	// says tells when the model is notified, for the doctor.
	says string
	// allow is the user's remaining step; DIR stands for the folder.
	allow string
	// server is the file for the server's entry, unless the client's file already has it; nil: the
	// client's file.
	server func(Places) string
	// folder is a plugin's, in which each file is ours; nil: there is none.
	folder func(Places) string
	// hooks are merged into the list at hooks.EVENT of a file.
	hooks     []moment
	hooksFile func(Places) string
	// write is a hook in the program's format.
	write func(h moment, command string) entry
	// files are written as a whole.
	files []ownFile
}

// A moment is an event at which a program runs a hook: before a prompt, to which the program adds
// the hook's output, or when the model has lost its context, so that the agent's record must be
// emptied too (forget).
type moment struct {
	event, matcher string
	forget         bool
}

// An ownFile is a file that only config writes.
type ownFile struct {
	file func(Places) string
	text func(c command) string
}

// A command describes the pagewire that a notifier runs.
type command struct {
	goos, binary string
	hub          string   // the flag's value; "" for the default
	inline       []string // origins whose contents the hooks may print
}

// hookSeconds is the program's timeout for our hook, which ends by itself within 3 s.
const hookSeconds = 5

// wakeFlags are the arguments for the command that wakes an agent.
var wakeFlags = []string{"watch", "--changes", "--all", "--lines", "--min-interval", "30s"}

// inGroup is the format of Claude Code, Codex, Gemini CLI and Qwen Code. second is one second in
// the program's unit.
func inGroup(second int) func(moment, string) entry {
	return func(h moment, run string) entry {
		one := entry{{"type", "command"}, {"command", run}, {"timeout", hookSeconds * second}}
		e := entry{{"hooks", []any{one}}}
		if h.matcher != "" {
			e = append(entry{{"matcher", h.matcher}}, e...)
		}
		return e
	}
}

// flat is the format of Copilot CLI, which has one command for bash and one for PowerShell.
func flat(_ moment, run string) entry {
	return entry{{"type", "command"}, {"bash", run}, {"powershell", "& " + run},
		{"timeoutSec", hookSeconds}}
}

const atEachPrompt = "told at each prompt"

// asClaude are the moments of Claude Code, which others have taken over.
var asClaude = []moment{{event: "UserPromptSubmit"},
	{event: "SessionStart", matcher: "clear|compact", forget: true}}

var (
	claudePlugin   = in(claudeDir, "skills", serverName)
	claudeNotifier = notifier{
		says:      "woken when a page changes, and " + atEachPrompt,
		allow:     "Claude Code before 2.1.157 loads it by: claude --plugin-dir DIR",
		server:    in(claudePlugin, ".mcp.json"),
		folder:    claudePlugin,
		hooksFile: in(claudePlugin, "hooks", "hooks.json"),
		hooks:     asClaude,
		write:     inGroup(1),
		files: []ownFile{
			{in(claudePlugin, ".claude-plugin", "plugin.json"), func(command) string {
				return jsonText(
					entry{{"name", serverName},
						{"description", "Live state of the web pages that are open"}})
			}},
			{in(claudePlugin, "monitors", "monitors.json"), func(c command) string {
				return jsonText(
					[]any{entry{{"name", serverName}, {"command", c.shell(c.watch()...)},
						{"description", "Pages that are open have changed"}, {"when", "always"}}})
			}},
		},
	}
	codexNotifier = notifier{
		says:      atEachPrompt,
		allow:     "Codex runs no hook before you trust it: type /hooks in Codex",
		hooksFile: in(codexDir, "hooks.json"),
		hooks:     asClaude,
		write:     inGroup(1),
	}
	geminiNotifier = notifier{
		says:      atEachPrompt,
		hooksFile: geminiSettings,
		hooks: []moment{{event: "BeforeAgent"},
			{event: "SessionStart", matcher: "clear", forget: true},
			{event: "PreCompress", forget: true}},
		write: inGroup(1000),
	}
	qwenNotifier = notifier{
		says:      atEachPrompt,
		hooksFile: qwenSettings,
		hooks:     asClaude,
		write:     inGroup(1000),
	}
	copilotNotifier = notifier{
		says:      atEachPrompt,
		hooksFile: in(copilotDir, "settings.json"),
		hooks: []moment{{event: "userPromptSubmitted"}, {event: "sessionStart", forget: true},
			{event: "preCompact", forget: true}},
		write: flat,
	}
	opencodeNotifier = notifier{
		says:  "woken when a page changes, and " + atEachPrompt,
		files: []ownFile{{in(opencodeDir, "plugin", serverName+".js"), opencodePlugin}},
	}
)

//go:embed opencode.js
var opencodeSource string

// opencodePlugin returns the plugin with the command lines of this machine.
func opencodePlugin(c command) string {
	_, code, _ := strings.Cut(opencodeSource, "// ---\n")
	lists := "const pagewire = " + cli.CompactJSON(c.binary) + ";\nconst changes = " +
		cli.CompactJSON(c.changes("")) + ";\n" +
		"const watch = " + cli.CompactJSON(c.watch()) + ";\n"
	return "// Written by pagewire config opencode --live; --remove takes it back.\n" + lists + code
}

// changes returns the arguments of a hook for a program. With "" the output is plain text.
func (c command) changes(program string, more ...string) []string {
	args := []string{"changes"}
	if program != "" {
		args = append(args, "--hook", program)
	}
	args = append(args, c.at()...)
	for _, origin := range c.inline {
		args = append(args, "--inline", origin)
	}
	return append(args, more...)
}

func (c command) watch() []string {
	return append(wakeFlags[:len(wakeFlags):len(wakeFlags)], c.at()...)
}

func (c command) at() []string {
	if c.hub == "" {
		return nil
	}
	return []string{"--hub", c.hub}
}

// shell returns a command line for a shell, with words quoted if they have special characters.
func (c command) shell(args ...string) string {
	var words []string
	for _, word := range append([]string{c.binary}, args...) {
		words = append(words, quotedWord(c.goos, word))
	}
	return strings.Join(words, " ")
}

// quotedWord quotes a word for the shells of a system. Those of Windows agree only on "/" and
// double quotes.
func quotedWord(goos, word string) string {
	if goos == "windows" {
		word = strings.ReplaceAll(word, `\`, "/")
	}
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./:@%+,=", r)
	}
	switch {
	case strings.IndexFunc(word, func(r rune) bool { return !safe(r) }) < 0:
		return word
	case goos == "windows":
		return `"` + word + `"` // a path of Windows cannot have a quote
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// parts returns the parts of the notifier, with the command lines of c.
func (r *notifier) parts(client string, p Places, c command) (all []part) {
	folder := ""
	if r.folder != nil {
		folder = r.folder(p)
	}
	var events []string
	for _, h := range r.hooks {
		events = append(events, h.event)
	}
	for _, h := range r.hooks {
		more := []string(nil)
		if h.forget {
			more = []string{"--forget"}
		}
		all = append(all, part{file: r.hooksFile(p), at: []string{"hooks", h.event}, hook: true,
			events: events, folder: folder,
			value: r.write(h, c.shell(c.changes(client, more...)...))})
	}
	for _, f := range r.files {
		all = append(all, part{file: f.file(p), value: f.text(c), folder: folder,
			marked: f.text(command{binary: mark, hub: mark})})
	}
	return all
}
