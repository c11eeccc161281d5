package main

import (
	_ "embed"
	"path/filepath"
	"strings"
)

// A notifier puts a change of a page into a request to a program's model, without a tool call. config --live writes it
// beside the entry of the server. Each one was seen to work in the request bodies of the published program.
type notifier struct {
	// says is when the model is notified, for the doctor.
	says string
	// allow is the user's remaining step; DIR stands for the directory of the hooks.
	allow string
	// server is the file for the server's entry, unless the client's file has it already; nil: the client's file.
	server func(places) string
	// hooks are merged into the list at hooks.EVENT of a file.
	hooks     []moment
	hooksFile func(places) string
	// write is a hook in the program's format.
	write func(h moment, command string) entry
	// files are whole files of ours.
	files []ownFile
}

// A moment is an event at which a program runs a hook: before a prompt, to which the program adds the output of the hook,
// or when the model's context is gone, and its record has to go too (forget).
type moment struct {
	event, matcher string
	forget         bool
}

// An ownFile is a file that only config writes.
type ownFile struct {
	file func(places) string
	text func(c command) string
}

// A command describes the pagewire that a notifier runs.
type command struct {
	goos, binary string
	hub          string   // the flag's value; "" for the default
	inline       []string // origins whose contents may be told
}

// hookSeconds is the timeout that a program has for a hook of ours, which ends by itself within 1 s.
const hookSeconds = 5

// wakeFlags are the arguments of a watch that wakes an agent.
var wakeFlags = []string{"watch", "--changes", "--all", "--lines", "--min-interval", "30s"}

// inGroup is the format of Claude Code, Codex, Gemini CLI and Qwen Code; second is the number of their units in a second.
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

// flat is the format of Copilot CLI: a command for each of two shells.
func flat(_ moment, run string) entry {
	return entry{{"type", "command"}, {"bash", run}, {"powershell", "& " + run}, {"timeoutSec", hookSeconds}}
}

const atEachPrompt = "told at each prompt"

var (
	claudePlugin   = in(claudeDir, "skills", serverName)
	claudeNotifier = notifier{
		says:      "woken when a page changes, and " + atEachPrompt,
		allow:     "Claude Code before 2.1.157 loads it by: claude --plugin-dir DIR",
		server:    in(claudePlugin, ".mcp.json"),
		hooksFile: in(claudePlugin, "hooks", "hooks.json"),
		hooks:     []moment{{event: "UserPromptSubmit"}, {event: "SessionStart", matcher: "clear|compact", forget: true}},
		write:     inGroup(1),
		files: []ownFile{
			{in(claudePlugin, ".claude-plugin", "plugin.json"), func(command) string {
				return jsonText(
					entry{{"name", serverName}, {"description", "Live state of the web pages that are open"}})
			}},
			{in(claudePlugin, "monitors", "monitors.json"), func(c command) string {
				return jsonText([]any{entry{{"name", serverName}, {"command", c.shell(c.watch()...)},
					{"description", "Pages that are open have changed"}, {"when", "always"}}})
			}},
		},
	}
	codexNotifier = notifier{
		says:      atEachPrompt,
		allow:     "Codex runs no hook before you trust it: type /hooks in Codex",
		hooksFile: in(codexDir, "hooks.json"),
		hooks:     []moment{{event: "UserPromptSubmit"}, {event: "SessionStart", matcher: "clear|compact", forget: true}},
		write:     inGroup(1),
	}
	geminiNotifier = notifier{
		says:      atEachPrompt,
		hooksFile: geminiSettings,
		hooks: []moment{{event: "BeforeAgent"}, {event: "SessionStart", matcher: "clear", forget: true},
			{event: "PreCompress", forget: true}},
		write: inGroup(1000),
	}
	qwenNotifier = notifier{
		says:      atEachPrompt,
		hooksFile: qwenSettings,
		hooks:     []moment{{event: "UserPromptSubmit"}, {event: "SessionStart", matcher: "clear|compact", forget: true}},
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

// opencodePlugin is the plugin with command lines of this machine.
func opencodePlugin(c command) string {
	_, code, _ := strings.Cut(opencodeSource, "// ---\n")
	lists := "const pagewire = " + quotedJSON(c.binary) + ";\nconst changes = " + quotedJSON(c.changes("")) + ";\n" +
		"const watch = " + quotedJSON(c.watch()) + ";\n"
	return "// Written by pagewire config opencode --live; --remove takes it back.\n" + lists + code
}

// changes are the arguments of a hook; program reads its output, "": as text.
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

// shell is a command line for a shell: words with special characters are quoted.
func (c command) shell(args ...string) string {
	var words []string
	for _, word := range append([]string{c.binary}, args...) {
		words = append(words, quotedWord(c.goos, word))
	}
	return strings.Join(words, " ")
}

// quotedWord quotes a word for the shells of a system. The ones of Windows agree only on "/" and double quotes.
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
		return `"` + word + `"` // no path of Windows has a quote in it
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// parts are all parts that the notifier writes.
func (r *notifier) parts(client string, p places, c command) (all []part) {
	for _, h := range r.hooks {
		program, more := client, []string(nil)
		if h.forget {
			more = []string{"--forget"}
		}
		all = append(all, part{file: r.hooksFile(p), At: []string{"hooks", h.event}, List: true,
			Value: r.write(h, c.shell(c.changes(program, more...)...))})
	}
	for _, f := range r.files {
		all = append(all, part{file: f.file(p), Value: f.text(c)})
	}
	return all
}

// allowed is allow with its directory.
func (r *notifier) allowed(p places) string {
	if r.server == nil {
		return r.allow
	}
	return strings.ReplaceAll(r.allow, "DIR", filepath.Dir(r.server(p)))
}
