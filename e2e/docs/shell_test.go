package docs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

const patience = 30 * time.Second

// longest bounds an sh block: one starts two nodes and a browser, on a busy machine too.
const longest = 90 * time.Second

// runShell runs a file's sh blocks, in their order, in one directory with a HOME of its own. The
// world's gateway has pages for them.
func runShell(t *testing.T, blocks []block) {
	var s *shell
	for _, b := range blocks {
		if b.language != "sh" {
			continue
		}
		t.Run(fmt.Sprintf("sh line %d", b.line), func(t *testing.T) {
			for _, problem := range unknown(t, b) {
				t.Errorf("%v: %s", b, problem)
			}
			if b.skipped() {
				if out, err := testcmd.Command("bash", "-n", "-c", b.code).
					CombinedOutput(); err != nil {
					t.Errorf("%v: bash cannot read it: %s", b, out)
				}
				return
			}
			if s == nil {
				s = newShell(t)
			}
			s.run(t, b)
		})
	}
	if s != nil {
		s.close()
	}
}

type shell struct {
	w         *world
	dir, home string
	http      string            // the file's own address; it replaces the usual one
	others    map[string]string // likewise, by the address in the file
}

func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{w: there(t), others: map[string]string{}}
	var err error
	if s.home, err = os.MkdirTemp("", "pw-"); err != nil { // short: a socket's path begins with it
		t.Fatal(err)
	}
	s.dir = filepath.Join(s.home, "work")
	bin := filepath.Join(s.home, "bin")
	// To pagewire extension install, a browser has been started once.
	for _, dir := range []string{s.dir, bin, filepath.Join(s.home, ".config/chromium")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.http = testkit.Addr(t)
	// Commands that speak to the gateway find the world's, by its directory and address. Commands
	// that write configuration write it in the file's own HOME.
	wrapper := fmt.Sprintf(
		"#!/bin/sh\ncase \"$1\" in serve|ls|read|watch|tools|call|changes|inspect|doctor) ;; *) exec %[1]q \"$@\" ;; esac\n"+
			"export XDG_CONFIG_HOME=%[3]q\ncase \" $* \" in *\" --hub\"*|*\" --help \"*) exec %[1]q \"$@\" ;; esac\n"+
			"exec %[1]q \"$@\" --hub %[2]s\n",
		binary("pagewire"),
		s.w.hub,
		s.w.hubHome,
	)
	if err := os.WriteFile(filepath.Join(bin, "pagewire"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary("pagewire-node"), filepath.Join(bin, "pagewire-node")); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the gateway lists the shop, the demo and the page of the start", func() bool {
		ls := testcmd.Command(filepath.Join(bin, "pagewire"), "ls")
		ls.Env = s.env()
		out, err := ls.Output()
		return err == nil && bytes.Contains(out, []byte("https://shop.example/state/cart")) &&
			bytes.Contains(out, []byte(s.w.demo+"/")) &&
			bytes.Contains(out, []byte(s.w.start.URL+"/state/cart"))
	})
	return s
}

func (s *shell) env() []string {
	kept := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "XDG_") ||
			strings.HasPrefix(v, "PATH=") ||
			strings.HasPrefix(v, "DISPLAY=") || strings.HasPrefix(v, "PAGEWIRE_")
	})
	return append(kept, "HOME="+s.home, "PATH="+s.home+"/bin:"+os.Getenv("PATH"))
}

// nodesAddress is an address of the two nodes of nodes.md, or of their service.
var nodesAddress = regexp.MustCompile(`127\.0\.0\.1:(8000|8440|844[12]|744[12])\b`)

// packed makes npm install from the registry of packed packages, with -g below the file's own HOME,
// and finds the programs that it installs there before all others.
func (s *shell) packed(t *testing.T, env []string) []string {
	t.Helper()
	url := testkit.Must(packedRegistry())(t)
	prefix := filepath.Join(s.home, "npm")
	return append(env, "npm_config_registry="+url, "npm_config_prefix="+prefix,
		"npm_config_userconfig="+filepath.Join(s.home, ".npmrc"),
		"npm_config_cache="+filepath.Join(s.home, "cache"), "npm_config_audit=false",
		"npm_config_update_notifier=false",
		"PATH="+filepath.Join(prefix, "bin")+":"+os.Getenv("PATH"))
}

func (s *shell) close() { os.RemoveAll(s.home) }

func (s *shell) run(t *testing.T, b block) {
	t.Helper()
	b.code = s.w.here(b.setup["sh"]+b.code, s.http, s.w.hub)
	b.code = nodesAddress.ReplaceAllStringFunc(b.code, func(addr string) string {
		if s.others[addr] == "" {
			s.others[addr] = testkit.Addr(t)
		}
		return s.others[addr]
	})
	env := s.env()
	if b.has("packed") {
		env = s.packed(t, env)
	}
	runScript(t, b, s.w.here(b.values["until"], s.http, s.w.hub), s.dir, env, longest)
}

// runScript runs a block until it ends, or until it has printed `until`.
func runScript(t *testing.T, b block, until, dir string, env []string, within time.Duration) {
	t.Helper()
	cmd := testcmd.Command("bash", "-e", "-o", "pipefail", "-c", b.code)
	cmd.Dir, cmd.Env = dir, env
	// a group, to end it with all its children
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out := &testkit.Log{}
	cmd.Stdout, cmd.Stderr = out, out
	if until != "" { // a server for an agent ends with its standard input
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	for late := time.After(within); until == "" || !out.Has(until); {
		select {
		case err := <-ended:
			status := 0
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				status = exit.ExitCode()
			}
			want, _ := strconv.Atoi(b.values["status"])
			if until == "" && status != want || !out.Has(until) {
				t.Errorf("%v ended with status %d, want %d and to say %q:\n%s\n%s\n%s", b, status,
					want, until, b.code, out,
					gatewayLogs())
			}
			return
		case <-late:
			t.Fatalf(
				"%v has neither ended within %v nor said %q; does it go on by itself (until=\"…\")?\n%s\n%s", b, within,
				until, out, gatewayLogs())
		case <-time.After(20 * time.Millisecond):
		}
	}
	syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
	select {
	case <-ended:
	case <-time.After(patience):
	}
}

// gatewayLogs returns the logs of the world's gateway for commands, the agent's and the daemons',
// or "" without one.
func gatewayLogs() (log string) {
	if theWorld == nil {
		return ""
	}
	daemons, _ := filepath.Glob(filepath.Join(theWorld.hubHome, "pagewire", "*.log"))
	for _, name := range append(daemons, filepath.Join(theWorld.hubHome, "serve.log")) {
		text, _ := os.ReadFile(name)
		log += string(text)
	}
	return log
}

var (
	ourCommand = regexp.MustCompile(
		`(?:^|[|;&(]\s*|\$\(|\bnpx\s+|\bexec\s+)(pagewire(?:-node)?)\s+([^|;&)\n]*)`)
	makeTarget = regexp.MustCompile(`(?m)^\s*make\s+([^#\n]*)`)
	anOption   = regexp.MustCompile(`(?:^|\s)(--[a-z][\w-]*)`)
	aCommand   = regexp.MustCompile(`^[a-z][a-z-]*$`)
	rest       = regexp.MustCompile(`\s#.*$`)
)

// unknown names the missing things that a block calls: commands and options of ours, and targets of
// the Makefile.
func unknown(t *testing.T, b block) (problems []string) {
	t.Helper()
	code := strings.ReplaceAll(b.code, "\\\n", " ")
	for line := range strings.Lines(code) {
		line = rest.ReplaceAllString(strings.TrimSpace(line), "")
		for _, m := range ourCommand.FindAllStringSubmatch(line, -1) {
			problems = append(problems, unknownIn(t, m[1], strings.Fields(m[2]))...)
		}
	}
	for _, m := range makeTarget.FindAllStringSubmatch(code, -1) {
		for _, word := range strings.Fields(m[1]) {
			if strings.Contains(word, "=") || strings.HasPrefix(word, "-") {
				continue
			}
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(word) + `:`).
				Match(read(t, "Makefile")) {
				problems = append(problems, "make has no target "+word)
			}
		}
	}
	return problems
}

func unknownIn(t *testing.T, program string, words []string) []string {
	t.Helper()
	var path, served []string
	if behind := slices.Index(words, "--"); behind >= 0 {
		words, served = words[:behind], words[behind+1:]
	}
	if program == "pagewire" && len(words) > 0 && words[0] == "node" {
		return unknownOptions(t, words[1:], "pagewire-node")
	}
	if program == "pagewire" {
		for _, w := range words[:min(len(words), 2)] {
			if !aCommand.MatchString(w) ||
				!strings.Contains(helpOf(t, program, path...), "\n  "+w+" ") {
				break
			}
			path = append(path, w)
		}
		if len(path) == 0 && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
			return []string{"pagewire has no command " + words[0]}
		}
	}
	problems := unknownOptions(t, words, program, path...)
	if len(path) == 1 && path[0] == "config" {
		problems = append(problems, unknownOptions(t, served, "pagewire", "serve")...)
	}
	return problems
}

func unknownOptions(t *testing.T, words []string, program string,
	path ...string) (problems []string) {
	t.Helper()
	help := helpOf(t, program, path...)
	for _, m := range anOption.FindAllStringSubmatch(strings.Join(words, " "), -1) {
		option := m[1]
		if option != "--help" &&
			!regexp.MustCompile(`(?m)^\s+(-\w, )?`+option+`\b`).MatchString(help) {
			problems = append(problems, strings.Join(append([]string{program}, path...), " ")+
				" has no option "+option)
		}
	}
	return problems
}

var helps sync.Map

func helpOf(t *testing.T, program string, path ...string) string {
	t.Helper()
	key := program + " " + strings.Join(path, " ")
	if known, is := helps.Load(key); is {
		return known.(string)
	}
	out, err := testcmd.Command(binary(program), append(slices.Clone(path), "--help")...).Output()
	if err != nil {
		t.Fatalf("%s --help: %v", key, err)
	}
	helps.Store(key, string(out))
	return string(out)
}
