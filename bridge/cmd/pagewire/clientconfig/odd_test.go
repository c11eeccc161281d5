package clientconfig

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig/files"
	"github.com/pagewire/pagewire/bridge/internal/jsonc"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// persons returns what a JSON text says that is not ours, in order: comments, names, and each other
// value byte for byte. Objects and lists that have nothing but what is ours say nothing. key is the
// member of the servers.
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
		hooks := len(path) > 0 && path[0] == "hooks" && len(path) < 5 &&
			(len(path) < 4 || path[3] == "hooks")
		if kind := v.Value.Kind(); kind != '{' && kind != '[' ||
			!(len(path) == 0 || len(path) == 1 && path[0] == key ||
				hooks && isList == (len(path)%2 == 0)) {
			all = append(all, string(hujson.Value{Value: v.Value}.Pack()))
			return
		}
		heads, values, end := jsonc.Items(v)
		for i, value := range values {
			if isList {
				group, _ := jsonc.Decoded(value).(map[string]any)
				list, _ := group["hooks"].([]any)
				delete(group, "matcher")
				ourGroup := len(list) == 1 && len(group) == 1 && value.IsStandard()
				if isOurs(value) && (list == nil || ourGroup) {
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
	d, err := jsonc.Parse(text)
	testkit.OK(t, err)
	walk(&d.Root, nil)
	return all
}

//go:embed testdata/odd
var oddities embed.FS

// fragments returns the parts of a file of testdata/odd.
func fragments(name string) []string {
	text, _ := oddities.ReadFile("testdata/odd/" + name + ".txt") // no error: it is embedded
	return strings.Split(string(text), "---\n")
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
			name := o.oneOf("a", "a", "mcpServers", "hooks", "pagewire", `é\u00e9`, "")
			all = append(all, o.member(name, o.value(depth-1)))
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
	return o.oneOf("1.50", "-0e+1", "true", "null", `""`, `"😀"`,
		`"// no, comment }"`, `"/*"`, `"\\\" pagewire changes"`)
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

// settings is a text for a client's JSON file. entry and hooks say whether another build has
// written ours into it.
func (o *odd) settings(key string, entry, hooks bool) string {
	var servers, events, all []string
	for i := range o.IntN(4) {
		servers = append(servers, o.member(fmt.Sprintf("s%d", i), o.value(3)))
	}
	second := `{"command":"/bin/pagewire", "args":["serve","--only","https://a.example" ]}`
	servers = append(servers, o.member("pagewire-work", second))
	if entry {
		stale := `{"command": "/old/pagewire", "args": ["serve"]}`
		servers = append(servers, o.member("pagewire", stale))
	}
	for event := range strings.FieldsSeq("UserPromptSubmit BeforeAgent userPromptSubmitted Other") {
		var list []string
		for range o.IntN(3) {
			list = append(list, o.oneOf(append(fragments("hooks"), o.value(2))...))
		}
		if hooks {
			list = append(list, o.oneOf(fragments("stale_hooks")...))
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
	blocks := fragments("tables")
	o.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
	first := o.oneOf("", "model = \"x\" # mine\n\n", "\n\t a.b.c = 1\n")
	blocks = slices.Insert(blocks[:o.IntN(len(blocks))], 0, first)
	clean = strings.Join(blocks, "")
	if stale {
		blocks = slices.Insert(blocks, 1+o.IntN(len(blocks)), o.oneOf(fragments("stale_tables")...))
	}
	mark := o.oneOf("", "\ufeff")
	text, clean = mark+strings.Join(blocks, ""), mark+clean
	if o.IntN(4) == 0 && !stale {
		text = strings.TrimSuffix(text, "\n")
		clean = text
	}
	return strings.ReplaceAll(text, "\n", o.newline), strings.ReplaceAll(clean, "\n", o.newline)
}

// A desk is the home of a person with odd settings for one client.
type desk struct {
	*Setup
	t    *testing.T
	seed int
	// was are the texts of the files before config, and clean those of TOML without what is ours.
	was, clean map[string]string
}

// A desk has a seed. With stale its files have parts of ours that another build wrote. Some files
// are links.
func (o *odd) desk(t *testing.T, c Client, stale bool) *desk {
	t.Helper()
	home := t.TempDir()
	p := Places{runtime.GOOS, home, func(string) string { return "" }}
	d := &desk{t: t, was: map[string]string{}, clean: map[string]string{},
		Setup: &Setup{Client: c, Places: p, Binary: "/opt/a b/pagewire"}}
	entries, hooks := map[string]bool{}, map[string]bool{}
	for _, p := range d.parts(c.IsLive()) {
		entries[p.file], hooks[p.file] = entries[p.file] || !p.hook, hooks[p.file] || p.hook
	}
	for _, p := range d.parts(c.IsLive()) {
		_, there := d.was[p.file]
		if there || p.at == nil || !stale && (p.folder != "" || o.IntN(8) == 0) {
			continue
		}
		text := o.settings(c.at()[0], stale && entries[p.file], stale && hooks[p.file])
		if p.toml() {
			text, d.clean[p.file] = o.table(stale)
		}
		d.was[p.file] = text
		testkit.OK(t, os.MkdirAll(filepath.Dir(p.file), 0o750))
		mode, at := os.FileMode(0o600+o.IntN(2)*0o40), p.file
		if o.IntN(3) == 0 {
			at = filepath.Join(home, fmt.Sprintf("dotfile-%d", len(d.was)))
			testkit.OK(t, os.Symlink(at, p.file))
		}
		testkit.OK(t, os.WriteFile(at, []byte(text), mode), os.Chmod(at, mode))
	}
	return d
}

// look checks that a person's files say what they said, and whether they have all of ours, or
// nothing.
func (d *desk) look(when string, ours bool) {
	d.t.Helper()
	for file, text := range d.was {
		is := string(testkit.Must(os.ReadFile(file))(d.t))
		got, want := lines(is), lines(d.clean[file])
		if filepath.Ext(file) != ".toml" {
			key := d.Client.at()[0]
			got, want = persons(d.t, []byte(is), key), persons(d.t, []byte(text), key)
		} else if ours {
			end := jsonc.NewlineOf([]byte(text))
			is, _, _ = strings.Cut(is, "[mcp_servers.pagewire]"+end+"command = \"/opt")
			got = lines(is)
		}
		if !slices.Equal(got, want) {
			d.t.Errorf("seed %d, %s, %s:\n%q is\n%q\n got %q\nwant %q", d.seed, d.Client.Name, when,
				text, is, got, want)
		}
	}
	if !ours && d.entry().has() {
		d.t.Errorf("seed %d, %s, %s: our entry is left", d.seed, d.Client.Name, when)
	}
	for _, p := range d.parts(d.Client.IsLive()) {
		text, _ := files.Read(p.file)
		if has := p.has(); has != ours || strings.Contains(string(text), "/old/pagewire") {
			d.t.Errorf("seed %d, %s, %s: in %s is ours: %t, %q", d.seed, d.Client.Name, when, p.file,
				has, text)
		}
	}
}

// lines are the lines of a text without empty ones.
func lines(text string) []string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
}

func (d *desk) write(ctx context.Context) ([]string, error) { return d.Write(ctx, false) }

func (d *desk) live(ctx context.Context) ([]string, error) {
	return d.Write(ctx, d.Client.IsLive())
}

// does reports whether a command succeeds. A second time it has nothing to do. If it fails, nothing
// is changed.
func (d *desk) does(command func(context.Context) ([]string, error)) bool {
	d.t.Helper()
	was := tree(d.t, d.Places.Home)
	_, err := command(d.t.Context())
	if err == nil {
		if done, err := command(d.t.Context()); err != nil || len(done) > 0 {
			d.t.Errorf("seed %d: a second time it writes %q, %v", d.seed, done, err)
		}
		return true
	}
	if remedy := cli.Remedy(err); !strings.Contains(err.Error(), d.Places.Home) ||
		!strings.Contains(remedy, "nothing was written") {
		d.t.Errorf("seed %d, %s: %v, %s", d.seed, d.Client.Name, err, remedy)
	}
	if now := tree(d.t, d.Places.Home); !maps.Equal(now, was) {
		d.t.Errorf("seed %d: refused, and %q is %q", d.seed, was, now)
	}
	return false
}

// Of 440 odd files, generated by seeds, each other entry is kept byte for byte, with all comments,
// by --live and by --remove, and nothing of ours is left. So are modes and links. A file that was
// cut is refused, or nothing is lost.
func TestOddFiles(t *testing.T) {
	inMemory(t)
	tried := map[string]int{}
	for seed := range 440 {
		c := Clients[seed%len(Clients)]
		o := &odd{Rand: rand.New(rand.NewPCG(uint64(seed), 49))}
		o.newline = o.oneOf("\n", "\n", "\r\n")
		stale := o.IntN(3) == 0
		d := o.desk(t, c, stale)
		d.seed = seed
		tried[c.Name]++
		before := tree(t, d.Places.Home)
		if d.Force = stale && o.IntN(2) == 0; stale && !d.Force {
			if !d.does(d.Remove) {
				t.Errorf("seed %d: what another build has written stays", seed)
			}
			d.look("--remove", false)
		}
		commands := []func(context.Context) ([]string, error){d.live, d.live, d.write}
		o.Shuffle(3, func(i, j int) { commands[i], commands[j] = commands[j], commands[i] })
		for _, command := range commands {
			if !d.does(command) {
				t.Errorf("seed %d: --write or --live fails", seed)
			}
		}
		d.look("--live", true)
		if !d.does(d.Remove) {
			t.Errorf("seed %d: --remove fails", seed)
		}
		d.look("--live, --remove", false)
		now := tree(t, d.Places.Home)
		for name, is := range before {
			if len(now[name]) < 10 || now[name][:10] != is[:10] {
				t.Errorf("seed %d: %s is %q, want %.10s", seed, name, now[name], is)
			}
		}
		for name, is := range now {
			if before[name] == "" && is[:10] != "-rw-------" {
				t.Errorf("seed %d: others may read %s: %.10s", seed, name, is)
			}
		}
		for file, text := range d.was { // cut off
			testkit.OK(t, os.WriteFile(file, []byte(text[:o.IntN(len(text)+1)]), 0o600))
		}
		if d.does(d.live) && !d.does(d.Remove) {
			t.Errorf("seed %d: cut off, it is written, and not taken out", seed)
		}
	}
	t.Log(tried)
}

// A path that is no file, leads nowhere or is read-only is refused, with what to do, and nothing is
// changed.
func TestPathsThatAreRefused(t *testing.T) {
	inMemory(t)
	for what, spoil := range map[string]func(path string) error{
		"read-only":   func(path string) error { return os.Chmod(path, 0o440) },
		"leads away":  func(path string) error { return os.Symlink(path+".nowhere", path) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a device":    func(path string) error { return os.Symlink("/dev/null", path) },
		"a loop":      func(path string) error { return os.Symlink(path, path) },
		"a FIFO":      func(path string) error { return testcmd.Command("mkfifo", path).Run() },
	} {
		for i, c := range Clients {
			o := &odd{Rand: rand.New(rand.NewPCG(uint64(i), 2)), newline: "\n"}
			d := o.desk(t, c, true)
			for file := range d.was {
				path := testkit.Must(filepath.EvalSymlinks(file))(t)
				if what != "read-only" {
					testkit.OK(t, os.Remove(path))
				}
				testkit.OK(t, spoil(path))
				d.Force = true
				if d.does(d.live) || d.does(d.Remove) {
					t.Errorf("%s is %s, and not refused", file, what)
				}
				break
			}
		}
	}
}

// If several processes write at once, each writes all its changes or none.
func TestConfigsThatWriteAtOnce(t *testing.T) {
	inMemory(t)
	for i, name := range []string{"codex", "gemini-cli", "claude-code"} {
		o := &odd{Rand: rand.New(rand.NewPCG(uint64(i), 3)), newline: "\n"}
		d := o.desk(t, named(name), true)
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				s := *d.Setup
				s.Force = true
				write := func(ctx context.Context) ([]string, error) { return s.Write(ctx, i%2 == 0) }
				command := []func(context.Context) ([]string, error){s.Remove, d.live, write}[i%3]
				if _, err := command(t.Context()); err != nil && !errors.Is(err, errOther) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		d.Force = true
		d.does(d.live)
		d.look("at once, --live", true)
		d.does(d.Remove)
		d.look("at once, --remove", false)
	}
}

// A process that is killed between two files has written each file as a whole or not at all. The
// next --live finishes its work, and --remove takes out all of ours, even after a --remove that was
// killed.
func TestKilledBetweenTwoFiles(t *testing.T) {
	inMemory(t)
	for _, c := range Clients {
		for _, removes := range []bool{false, true} {
			for n, more := 0, true; more; n++ {
				o := &odd{Rand: rand.New(rand.NewPCG(uint64(n), 1)), newline: "\n"}
				d := o.desk(t, c, false)
				change, err := d.with(d.parts(c.IsLive()))
				if removes && d.does(d.live) {
					change, _, err = d.without(d.parts(c.IsLive()))
				}
				testkit.OK(t, err)
				all := slices.DeleteFunc(change.Files, func(f *files.File) bool { return !f.Changed() })
				change.Files = all[:n]
				testkit.Must(change.Do(t.Context()))(t)
				if more = n < len(all); n%2 == 0 {
					d.does(d.live)
					d.look("killed, --live", true)
				}
				d.does(d.Remove)
				d.look("killed, --remove", false)
			}
		}
	}
}

// inMemory keeps the test's files on no disk, for which each write would wait.
func inMemory(t *testing.T) {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm")
	}
}

// tree returns the mode and the text of each file below a directory, and where its links lead.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	testkit.OK(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		text, to := []byte(nil), ""
		if info.Mode().IsRegular() {
			text, _ = os.ReadFile(path)
		} else {
			to, _ = os.Readlink(path)
		}
		all[path] = fmt.Sprint(info.Mode(), " ", to, " ", string(text))
		return err
	}))
	return all
}
