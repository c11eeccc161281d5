//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/desktop/serve"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/script"
)

// TestCommandLines plays the conversations in testdata, each in an empty home. Words with spaces are quoted as in Go.
//
//	pagewire ARG...        its standard output, its standard error after "! ", and its status unless that is 0. After
//	                       another status no file has changed, except by extension. $HOME is the home, $SELF this program
//	serve ARG...           the function that pagewire serve would run, with the options that differ from the defaults
//	check NAME             the doctor's findings of a check or a client
//	file PATH TEXT [MODE]  writes a file; edit PATH OLD NEW changes it
//	dir PATH, fifo PATH, link PATH TARGET, move PATH TO
//	tree PATH [N]          all files below, with N lines of each; home makes another, empty home
//	env NAME VALUE         sets a variable of the environment
//	tool NAME TEXT RESULT  adds a tool with this description to the page; its result is RESULT, and $ARGS in it
//	page TEXT              starts a daemon whose page has the text at /state/cart; closed closes its tab
func TestCommandLines(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	script.Each(t, func(t *testing.T, file string) {
		script.Play(t, file, func(s *script.Script) func(string) {
			self := testkit.Must(os.Executable())(t)
			d := &desk{s: s, t: t, home: atHome(t), self: self}
			for _, name := range []string{"PAGEWIRE_TOKEN_FILE", "PAGEWIRE_BROWSER", "PATH", "DISPLAY", "WAYLAND_DISPLAY"} {
				t.Setenv(name, "") // what this machine has
			}
			return d.do
		})
	})
}

type desk struct {
	s          *script.Script
	t          *testing.T
	home, self string
	page       *running
}

func (d *desk) do(line string) {
	var w []string
	for line != "" {
		if word, err := strconv.QuotedPrefix(line); err == nil {
			text, _ := strconv.Unquote(word) // no error: it is quoted
			w, line = append(w, text), strings.TrimSpace(line[len(word):])
		} else {
			word, rest, _ := strings.Cut(line, " ")
			w, line = append(w, strings.ReplaceAll(word, "$HOME", d.home)), strings.TrimSpace(rest)
		}
	}
	path := filepath.Join(d.home, slices.Concat(w, []string{""})[1])
	var err error
	switch verb := w[0]; verb {
	case "pagewire":
		d.pagewire(w[1:])
	case "serve":
		d.serve(w)
	case "check":
		d.check(w[1])
	case "file":
		mode, _ := strconv.ParseUint(slices.Concat(w, []string{"640"})[3], 8, 32)
		fill(d.t, d.home, map[string]string{w[1]: w[2]})
		err = os.Chmod(path, os.FileMode(mode))
	case "edit":
		var text []byte
		if text, err = os.ReadFile(path); !strings.Contains(string(text), w[2]) {
			d.t.Fatalf("no %s in %s, %v", w[2], text, err)
		}
		err = os.WriteFile(path, []byte(strings.ReplaceAll(string(text), w[2], w[3])), 0o640)
	case "dir":
		err = os.MkdirAll(path, 0o700)
	case "fifo":
		err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), fifo(path))
	case "link":
		err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(w[2], path))
	case "move":
		err = os.Rename(path, filepath.Join(d.home, w[2]))
	case "tree":
		if _, err := os.Lstat(path); err != nil {
			d.s.Say("there is no %s", w[1])
			return
		}
		most, _ := strconv.Atoi(slices.Concat(w, []string{"1000"})[2])
		all := tree(d.t, path)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			kind, text, _ := strings.Cut(all[name], " ")
			lines := slices.Collect(strings.Lines(text))
			d.s.Say("%s %s", kind, filepath.Join(w[1], name))
			d.say("  | ", strings.Join(lines[:min(most, len(lines))], ""))
		}
	case "env":
		d.t.Setenv(w[1], w[2])
	case "home":
		d.home = atHome(d.t)
		d.t.Setenv("PAGEWIRE_TOKEN_FILE", "")
	case "page":
		d.page = start(d.t, "", w[1])
	case "tool":
		d.page.page.SetTool(w[1], testkit.Tool{Members: map[string]any{"description": w[2]},
			Run: func(_ context.Context, args json.RawMessage, _ func(map[string]any)) any {
				escaped := strconv.Quote(string(args))
				return json.RawMessage(strings.ReplaceAll(w[3], "$ARGS", escaped[1:len(escaped)-1]))
			}})
	case "closed":
		d.page.g.CloseTab("a")
	default:
		d.t.Fatalf("unknown line %q", w)
	}
	if err != nil {
		d.t.Fatal(w, err)
	}
}

// say prints a text line by line, and shows invisible characters as escapes.
func (d *desk) say(mark, text string) {
	text = strings.NewReplacer(d.self, "$SELF", d.home, "$HOME").Replace(text)
	if d.page != nil {
		text = strings.ReplaceAll(text, d.page.addr, "$ADDR")
	}
	for line := range strings.Lines(text) {
		quoted := strconv.Quote(line)
		shown, whole := strings.CutSuffix(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), `\n`)
		if !whole {
			shown += " (no newline)"
		}
		d.s.Say("%s%s", mark, shown)
	}
}

func (d *desk) pagewire(args []string) {
	if d.page != nil {
		args = append(args, "--hub", d.page.addr)
	}
	before := tree(d.t, d.home)
	over := make(chan bool, 1)
	var status int
	var out, errs string
	go func() {
		status, out, errs = run(args...)
		close(over)
	}()
	testkit.Ends(d.t, "the command ends", over)
	d.say("", out)
	d.say("! ", errs)
	if status != exitDone {
		d.s.Say("status %d", status)
	}
	if status != exitDone && args[0] != "extension" && !strings.HasSuffix(errs, " is not set up\n") {
		same(d.t, fmt.Sprint("after ", args), tree(d.t, d.home), before)
	}
}

func (d *desk) check(name string) {
	var findings []finding
	for _, p := range programs() {
		findings = append(findings, p.finding())
	}
	for _, c := range checks {
		if c.name == name {
			f := c.run(d.t.Context(), checkup{})
			f.Check = name
			findings = append(findings, f)
		}
	}
	for _, f := range findings {
		if f.Check == name {
			d.say("", f.Status+": "+f.Says+"\n")
			if f.Do != "" {
				d.say("→ ", f.Do+"\n")
			}
		}
	}
}

func (d *desk) serve(args []string) {
	taking := func(name string) func(context.Context, serve.Options) error {
		return func(_ context.Context, o serve.Options) error {
			if o.Log == nil || o.In == nil || o.Out == nil || o.Version != versionName() {
				d.t.Errorf("%q: %+v", args, o)
			}
			o.Log, o.Version = nil, ""
			d.say("", name+changed(reflect.ValueOf(o), reflect.ValueOf(d.usual()))+"\n")
			return nil
		}
	}
	replaceServe(d.t, taking("agent"), taking("foreground"))
	d.pagewire(args)
}

// usual returns the options of an agent's serve without flags.
func (d *desk) usual() (o serve.Options) {
	f := new(serveFlags)
	cmd := serveInto(f)
	f.config = "none"
	testkit.OK(d.t, checkServe(cmd, f))
	return f.Options
}

// changed lists the fields of a struct that differ from those of another.
func changed(is, was reflect.Value) (all string) {
	for i := range is.NumField() {
		a, b, name := is.Field(i), was.Field(i), is.Type().Field(i).Name
		if a.Kind() == reflect.Pointer && !a.IsNil() {
			a, b = a.Elem(), reflect.Zero(a.Type().Elem())
			all += " " + name
		}
		switch a.Kind() {
		case reflect.Struct:
			all += changed(a, b)
		case reflect.Slice:
			if a.Len() > 0 {
				all += fmt.Sprintf(" %s=%q", name, a)
			}
		case reflect.Bool, reflect.Int, reflect.String:
			if !a.Equal(b) {
				all += fmt.Sprintf(" %s=%v", name, a)
			}
		}
	}
	return all
}
