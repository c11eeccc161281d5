package clientconfig

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/pagewire/pagewire/bridge/weborigin"
)

// Errors about what is there under our name.
var (
	errOther   = errors.New("has another entry named " + serverName)
	errNotOurs = errors.New("has an entry named " + serverName + " that is for something else")
	errNotOwn  = errors.New("is there, and is not what this pagewire writes")
)

// ourEntry reports whether an entry of our name is ours: it starts pagewire serve, with whatever
// flags and by whatever program, or it has the address of a gateway on this machine.
func ourEntry(is any) bool {
	whole := wordsOf(is)
	var words []string // one may be a whole command line, for a shell
	for _, word := range whole {
		words = append(words, strings.Fields(word)...)
	}
	return serves(words) || serves(whole)
}

// wordsOf returns the command line of an entry, program first, and its address.
func wordsOf(is any) (words []string) {
	members, _ := is.(map[string]any)
	for _, name := range []string{"command", "args", "url", "serverUrl", "httpUrl"} {
		list, ok := members[name].([]any)
		if !ok {
			list = []any{members[name]}
		}
		for _, word := range list {
			if text, _ := word.(string); text != "" {
				words = append(words, text)
			}
		}
	}
	return words
}

func serves(words []string) bool {
	for i, word := range words {
		if u, err := url.Parse(word); err == nil && u.Path == "/mcp" &&
			weborigin.IsLoopbackHost(u.Hostname()) ||
			i > 0 && word == "serve" && ourProgram(words[i-1]) {
			return true
		}
	}
	return false
}

// ourProgram reports whether a path, or a package of npm, is this program.
func ourProgram(path string) bool {
	name, _, _ := strings.Cut(path[strings.LastIndexAny(path, `/\`)+1:], "@")
	name, _, _ = strings.Cut(name, " (") // as browsers name a second download
	self, err := os.Executable()
	plain := strings.NewReplacer(".exe", "", ".cmd", "", "'", "", `"`, "").Replace
	return plain(name) == serverName || err == nil && plain(name) == plain(filepath.Base(self))
}

// changesCommand is a command line that runs pagewire changes and nothing else: in a pipeline or a
// list of commands a person has put it there. The first word is the program.
var changesCommand = regexp.MustCompile(strings.ReplaceAll(`^(?:& )?(word) changes(?: word)*$`,
	"word", `(?:[\w./:@%+,=*~$\\-]|'[^']*'|"[^"]*"|\\')+`))

// ourHook reports whether a hook is ours: it runs pagewire changes, in each of the shells that it
// has a command for.
func ourHook(is any) bool {
	hook, _ := is.(map[string]any)
	ours := false
	for _, shell := range []string{"command", "bash", "powershell"} {
		if run, ok := hook[shell].(string); ok {
			words := changesCommand.FindStringSubmatch(run)
			if ours = words != nil && ourProgram(words[1]); !ours {
				return false
			}
		}
	}
	return ours
}

// includes reports whether an existing value includes a wanted one. It may have further members,
// which are the user's.
func includes(is, want any) bool {
	members, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(want, is)
	}
	has, ok := is.(map[string]any)
	for name, value := range members {
		got, there := has[name]
		if name == "type" && !there {
			continue // clients detect it themselves
		}
		if !there || !reflect.DeepEqual(value, got) {
			return false
		}
	}
	return ok
}
