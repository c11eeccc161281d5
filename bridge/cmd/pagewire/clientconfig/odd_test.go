package clientconfig

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// persons returns what a JSON text says that is not ours, in order: comments, names, and each other value byte for byte.
// Objects and lists that have nothing but what is ours say nothing. key is the member of the servers.
func persons(t *testing.T, text []byte, key string) (all []string) {
	t.Helper()
	comment := regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	comments := func(extra hujson.Extra) {
		for _, c := range comment.FindAllString(string(extra), -1) {
			all = append(all, strings.TrimRight(c, "\r"))
		}
	}
	hook := regexp.MustCompile("/pagewire'? changes --hook ")
	isOurs := func(v *hujson.Value) bool { return hook.MatchString(v.String()) }
	var walk func(v *hujson.Value, path []string)
	walk = func(v *hujson.Value, path []string) {
		comments(v.BeforeExtra)
		defer func() { comments(v.AfterExtra) }()
		_, isList := v.Value.(*hujson.Array)
		hooks := len(path) > 0 && path[0] == "hooks" && (len(path) < 4 || len(path) == 4 && path[3] == "hooks")
		if kind := v.Value.Kind(); kind != '{' && kind != '[' ||
			!(len(path) == 0 || len(path) == 1 && path[0] == key || hooks && isList == (len(path)%2 == 0)) {
			all = append(all, string(hujson.Value{Value: v.Value}.Pack()))
			return
		}
		heads, values, end := items(v)
		for i, value := range values {
			if isList {
				group, _ := decoded(value).(map[string]any)
				list, _ := group["hooks"].([]any)
				delete(group, "matcher")
				if isOurs(value) && (list == nil || len(list) == 1 && len(group) == 1 && value.IsStandard()) {
					comments(value.BeforeExtra)
					comments(value.AfterExtra)
					continue
				}
				walk(value, append(slices.Clone(path), "0"))
				continue
			}
			name := heads[i].Value.(hujson.Literal).String()
			comments(heads[i].BeforeExtra)
			if len(path) == 1 && path[0] == key && name == serverName {
				comments(value.AfterExtra)
				continue
			}
			before := len(all)
			all = append(all, name)
			comments(heads[i].AfterExtra)
			walk(value, append(slices.Clone(path), name))
			if len(all) == before+1 {
				all = all[:before]
			}
		}
		comments(*end)
	}
	d, err := parseJSON(text)
	testkit.OK(t, err)
	walk(&d.root, nil)
	return all
}

// An odd is a generator of texts that people and programs could have written.
type odd struct {
	*rand.Rand
	newline string
	n       int // of the comments
}

func (o *odd) oneOf(all ...string) string { return all[o.IntN(len(all))] }

// space is between two tokens of JSON.
func (o *odd) space() string {
	o.n++
	line := o.newline + strings.Repeat(o.oneOf(" ", "\t", "   "), o.IntN(4))
	return o.oneOf("", "", "", " ", line, line, "\t  ", fmt.Sprintf(" /* %d */ ", o.n),
		fmt.Sprintf(" // %d, \"}%s", o.n, line), fmt.Sprintf("%s// pagewire %d%s", line, o.n, line))
}

// value is any JSON value.
func (o *odd) value(depth int) string {
	switch kind := o.IntN(8); {
	case kind < 3 && depth > 0:
		var all []string
		for range o.IntN(4) {
			all = append(all, o.member(o.oneOf("a", "a", "mcpServers", "hooks", "pagewire", `é\u00e9`, ""), o.value(depth-1)))
		}
		return o.list("{", all, "}")
	case kind < 5 && depth > 0:
		var all []string
		for range o.IntN(4) {
			all = append(all, o.value(depth-1))
		}
		return o.list("[", all, "]")
	case kind == 5:
		return strings.Repeat("[", 300) + o.space() + strings.Repeat("]", 300)
	}
	return o.oneOf("1.50", "-0e+1", "true", "null", `"// no, comment }"`, `"/*"`, `"\\\" pagewire changes"`, `""`, `"😀"`)
}

func (o *odd) member(name, value string) string {
	return `"` + name + `"` + o.space() + ":" + o.space() + value
}

func (o *odd) list(open string, all []string, end string) string {
	for i, one := range all {
		all[i] = o.space() + one + o.space()
	}
	if len(all) > 0 && o.IntN(3) == 0 {
		end = "," + o.space() + end
	}
	return open + strings.Join(all, ",") + o.space() + end
}

// settings is a text for a client's JSON file. entry and hooks say whether another build has written ours into it.
func (o *odd) settings(key string, entry, hooks bool) string {
	var servers, events, all []string
	for i := range o.IntN(4) {
		servers = append(servers, o.member(fmt.Sprintf("s%d", i), o.value(3)))
	}
	servers = append(servers, o.member("pagewire-work", `{"command":"/bin/pagewire", "args":["serve","--only","https://a.example" ]}`))
	if entry {
		servers = append(servers, o.member("pagewire", `{"command": "/old/pagewire", "args": ["serve"]}`))
	}
	for _, event := range []string{"UserPromptSubmit", "BeforeAgent", "userPromptSubmitted", "Other"} {
		var list []string
		for range o.IntN(3) {
			list = append(list, o.oneOf(`{"command": "date"  }`, `{"matcher":"x","hooks":[ {"type":"command", "command":"date"}]}`,
				`{"hooks": [], /* mine */ }`, `{"command":"pagewire changes | tee x"}`, o.value(2)))
		}
		if hooks {
			list = append(list, o.oneOf(`{"type": "command", "bash": "/old/pagewire changes --hook copilot"}`,
				`{"hooks":[{"command": "/old/pagewire changes --hook codex", "timeout": 9}]}`,
				`{"matcher":"x","hooks":[{"command":"/old/pagewire changes --hook codex"}, {"command": "mine"} ]}`,
				`{"matcher":"x", /* mine */ "hooks":[{"command":"/old/pagewire changes --hook codex"}]}`))
		}
		o.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		if o.IntN(2) == 0 || hooks {
			events = append(events, o.member(event, o.list("[", list, "]")))
		}
	}
	o.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
	for range o.IntN(4) {
		all = append(all, o.member(o.oneOf("theme", "theme", "projects", "model"), o.value(4)))
	}
	if o.IntN(4) > 0 || entry {
		all = append(all, o.member(key, o.list("{", servers, "}")))
	}
	if o.IntN(4) > 0 || hooks {
		all = append(all, o.member("hooks", o.list("{", events, "}")))
	}
	o.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return o.oneOf("", "\ufeff") + o.space() + o.list("{", all, "}") + o.space()
}

// table is a text for Codex's TOML file, and the same without what is ours.
func (o *odd) table(stale bool) (text, clean string) {
	blocks := []string{"[mcp_servers.other] # x\ncommand='x'\n  args = [ 1,\n # no ]\n]\n", "[mcp_servers.other.env]\nA.\"b c\" = '1'\n",
		"[[profiles]]\na = {b=1,  c=[]}\n", "[projects.\"/home/a/pagewire\"]\ntrust=\"x\"\n\n\n", "# the end\n", "[ tui ]\nx = 1979-05-27\n",
		"[notes]\ntext = '''\n[mcp_servers.pagewire]\ncommand = 'x'\n'''\n", "[mcp_servers.pagewire-work]\ncommand = 'pagewire'\nargs = ['serve', '--only', 'x']\n"}
	o.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
	blocks = append([]string{o.oneOf("", "model = \"x\" # mine\n\n", "\n\t a.b.c = 1\n")}, blocks[:o.IntN(len(blocks))]...)
	clean = strings.Join(blocks, "")
	if stale {
		at := 1 + o.IntN(len(blocks))
		blocks = slices.Insert(blocks, at, o.oneOf("[mcp_servers.pagewire]\n# mine\ncommand = '/old/pagewire'\nargs = ['serve']\n",
			"[mcp_servers.\"pagewire\"] # x\nurl = \"http://localhost:7433/mcp\"\n[mcp_servers.pagewire.tools.read_page_resource]\na = [\n1]\n"))
	}
	mark := o.oneOf("", "\ufeff")
	text, clean = mark+strings.Join(blocks, ""), mark+clean
	if o.IntN(4) == 0 && !stale {
		text = strings.TrimSuffix(text, "\n")
		clean = text
	}
	return strings.ReplaceAll(text, "\n", o.newline), strings.ReplaceAll(clean, "\n", o.newline)
}

// Of 440 odd files, generated by seeds, each other entry is kept byte for byte, with all comments, by --live and by
// --remove, and nothing of ours is left. So are modes and links. A file that was cut is refused, or treated the same.
func TestOddFiles(t *testing.T) {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm") // without a disk to wait for
	}
	tried := map[string]int{}
	for seed := range 440 {
		c := Clients[seed%len(Clients)]
		tried[c.Name]++
		o := &odd{Rand: rand.New(rand.NewPCG(uint64(seed), 49))}
		o.newline = o.oneOf("\n", "\n", "\r\n")
		home := t.TempDir()
		s := &Setup{Client: c, Places: Places{runtime.GOOS, home, func(string) string { return "" }}, Binary: "/opt/a b/pagewire"}
		stale, cutOff := o.IntN(3) == 0, o.IntN(8) == 0
		was, clean := map[string][]byte{}, map[string]string{}
		entries, hooks := map[string]bool{}, map[string]bool{}
		for _, p := range s.parts(c.IsLive()) {
			entries[p.file], hooks[p.file] = entries[p.file] || !p.hook, hooks[p.file] || p.hook
		}
		for _, p := range s.parts(c.IsLive()) {
			if p.at == nil || p.folder != "" && !stale || was[p.file] != nil {
				continue
			}
			text := o.settings(c.key, stale && entries[p.file], stale && hooks[p.file])
			if p.toml() {
				text, clean[p.file] = o.table(stale)
			}
			if cutOff {
				text = text[:o.IntN(len(text)+1)]
			}
			testkit.OK(t, os.MkdirAll(filepath.Dir(p.file), 0o750))
			was[p.file] = []byte(text)
			mode := os.FileMode(0o600 + o.IntN(2)*0o40)
			at := p.file
			if o.IntN(3) == 0 {
				at = filepath.Join(home, fmt.Sprintf("dotfile-%d", len(was)))
				testkit.OK(t, os.Symlink(at, p.file))
			}
			testkit.OK(t, os.WriteFile(at, was[p.file], mode), os.Chmod(at, mode))
		}
		look := func(when string, hasOurs bool) {
			t.Helper()
			for file, text := range was {
				is, err := os.ReadFile(file)
				if err != nil {
					t.Fatalf("seed %d, %s: %v", seed, when, err)
				}
				if filepath.Ext(file) == ".toml" {
					lines := func(text string) []string {
						lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
						return slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
					}
					rest, _, _ := bytes.Cut(is, []byte("[mcp_servers.pagewire]"+newlineOf(text)+"command = \"/opt"))
					if !hasOurs {
						rest = is
					}
					if want := clean[file]; !cutOff && !slices.Equal(lines(string(rest)), lines(want)) ||
						!stale && !bytes.HasPrefix(is, text) {
						t.Errorf("seed %d, %s, %s: %q is %q", seed, when, c.Name, text, is)
					}
				} else if got, want := persons(t, is, c.key), persons(t, text, c.key); !slices.Equal(got, want) {
					t.Errorf("seed %d, %s, %s:\n%q is\n%q\n got %q\nwant %q", seed, when, c.Name, text, is, got, want)
				}
			}
			for _, p := range s.parts(c.IsLive()) {
				if text, _ := Read(p.file); p.has() != hasOurs || strings.Contains(string(text), "/old/pagewire") {
					t.Errorf("seed %d, %s, %s: ours is in %s: %t, %q", seed, when, c.Name, p.file, p.has(), text)
				}
			}
		}
		before := modes(t, home)
		do := func(what func(context.Context) ([]string, error)) bool {
			t.Helper()
			texts := modes(t, home)
			_, err := what(t.Context())
			if err == nil {
				if done, err := what(t.Context()); err != nil || len(done) > 0 {
					t.Errorf("seed %d: a second time it writes %q, %v", seed, done, err)
				}
				return true
			}
			if !cutOff || !strings.Contains(err.Error(), home) {
				t.Errorf("seed %d, %s: %v", seed, c.Name, err)
			}
			if now := modes(t, home); fmt.Sprint(now) != fmt.Sprint(texts) {
				t.Errorf("seed %d: refused, and %q is %q", seed, texts, now)
			}
			return false
		}
		write := func(ctx context.Context) ([]string, error) { return s.Write(ctx, c.IsLive()) }
		if stale && !do(s.Remove) { // what another build has written, with no record of it
			continue
		} else if stale {
			look("--remove", false)
		}
		if !do(write) {
			continue
		}
		look("--live", true)
		if !do(s.Remove) {
			t.Errorf("seed %d: written, and not taken out", seed)
		}
		look("--live, --remove", false)
		now := modes(t, home)
		for name, mode := range before {
			if mode, is := mode[:10], now[name]; len(is) < 10 || is[:10] != mode {
				t.Errorf("seed %d: %s is %q, want %s", seed, name, is, mode)
			}
		}
	}
	t.Log(tried)
}

// modes returns the mode and the text of each file below a directory, and where its links lead.
func modes(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	testkit.OK(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		text, _ := os.ReadFile(path)
		to, _ := os.Readlink(path)
		all[path] = fmt.Sprint(info.Mode(), " ", to, " ", string(text))
		return err
	}))
	return all
}
