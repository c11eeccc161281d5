package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/pagewire/pagewire/bridge/node/process"
	"github.com/pagewire/pagewire/bridge/node/tickets"
)

// try runs a command line without serving, and returns the options of the process.
func try(t *testing.T, env map[string]string, args ...string) (o process.Options, status int, errs string) {
	t.Helper()
	before := serve
	t.Cleanup(func() { serve = before })
	serve = func(_ context.Context, given process.Options) error {
		o = given
		return nil
	}
	var out, err bytes.Buffer
	status = run(t.Context(), args, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}, &out, &err)
	return o, status, err.String()
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "node.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A flag counts before the environment, and the environment before the file.
func TestWhatCountsFirst(t *testing.T) {
	file := write(t, "\ufeff"+`{"listen":"127.0.0.1:1","admin":"127.0.0.1:2","public-url":"https://file.example",
		"join":["a:1","b:2"],"drain":"5s","max-pages":1000000,"insecure-http":true,"space":"file",
		"issuers":[{"issuer":"https://login.example","tenant":"shop","jwks":"keys.json","for":["pages"]}]}`)
	env := map[string]string{"PAGEWIRE_CONFIG": file, "PAGEWIRE_ADMIN": "127.0.0.1:3", "PAGEWIRE_SPACE": "env",
		"PAGEWIRE_ALLOW_HOST": "x.example,y.example"}
	o, status, errs := try(t, env, "--space", "flag")
	if status != 0 {
		t.Fatal(errs)
	}
	want := process.Options{
		Listen: "127.0.0.1:1", Admin: "127.0.0.1:3", PublicURL: "https://file.example", Join: []string{"a:1", "b:2"},
		Drain: 5 * time.Second, DrainDelay: process.DefaultDrainDelay, Pages: 1_000_000, InsecureHTTP: true, Space: "flag",
		AllowHosts: []string{"x.example", "y.example"},
		Issuers: []tickets.Issuer{{Issuer: "https://login.example", Tenant: "shop", JWKS: "keys.json",
			For: []string{"pages"}}},
	}
	o.Log, o.Version = nil, ""
	if !reflect.DeepEqual(o, want) {
		t.Errorf("options\n%+v\nwant\n%+v", o, want)
	}
}

func TestOptionsThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		env  map[string]string
		args []string
		says string
	}{
		"no JSON":           {file: `{`, says: "is no JSON object"},
		"a list":            {file: `[]`, says: "is no JSON object"},
		"two objects":       {file: `{} {}`, says: "more text after"},
		"an unknown member": {file: `{"public_url":"x"}`, says: `"public_url" in`},
		"a wrong type":      {file: `{"join":"x"}`, says: "list of strings"},
		"a wrong number":    {file: `{"max-pages":"many"}`, says: `"max-pages" in`},
		"an object":         {file: `{"space":{}}`, says: "a string, a number"},
		"a wrong issuer":    {file: `{"issuers":[{"isuer":"x"}]}`, says: "issuers in"},
		"a wrong variable":  {env: map[string]string{"PAGEWIRE_DRAIN": "soon"}, says: "PAGEWIRE_DRAIN="},
		"an unknown flag":   {args: []string{"--nonsense"}, says: "unknown flag"},
		"an argument":       {args: []string{"x"}, says: "unknown command"},
		"a wrong level":     {args: []string{"--log-level", "loud"}, says: "--log-level"},
		"a wrong format":    {args: []string{"--log-format", "xml"}, says: "--log-format"},
		"no such file":      {args: []string{"--config", "/nowhere/node.json"}, says: "/nowhere/node.json"},
	} {
		args := c.args
		if c.file != "" {
			args = append(args, "--config", write(t, c.file))
		}
		_, status, errs := try(t, c.env, args...)
		if status == 0 || !strings.Contains(errs, c.says) || !strings.HasPrefix(errs, "pagewire-node: ") {
			t.Errorf("%s: status %d, %q", name, status, errs)
		}
	}
}

// The flag says where traces go, or else OpenTelemetry's own variables. Without either there are
// none.
func TestWhereTracesGo(t *testing.T) {
	const base, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"nothing":       {},
		"the endpoint":  {env: map[string]string{base: "http://a:4318/"}, want: "http://a:4318/v1/traces"},
		"that of these": {env: map[string]string{base: "http://a", own: "http://b/x"}, want: "http://b/x"},
		"the flag": {env: map[string]string{base: "http://a"}, args: []string{"--traces", "http://c"},
			want: "http://c"},
		"disabled":  {env: map[string]string{base: "http://a", "OTEL_SDK_DISABLED": "true"}},
		"no traces": {env: map[string]string{base: "http://a", "OTEL_TRACES_EXPORTER": "none"}},
	} {
		o, status, errs := try(t, c.env, c.args...)
		if status != 0 || o.Traces != c.want {
			t.Errorf("%s: %q, %s", name, o.Traces, errs)
		}
	}
}

// The page for operators lists exactly the flags of the program, each with the default that --help
// tells.
func TestFlagsInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../../demo/docs/nodes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "<!-- flags:")
	table, _, _ = strings.Cut(table, "<!-- end of flags -->")
	var listed []string
	defaults := map[string]string{}
	for _, line := range strings.Split(table, "\n") {
		first, rest, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		second, _, _ := strings.Cut(rest, "|")
		if !strings.HasPrefix(line, "| `--") {
			continue
		}
		names := regexp.MustCompile("`--([a-z-]+)`").FindAllStringSubmatch(first, -1)
		cells := strings.Split(strings.Trim(strings.ReplaceAll(second, "`", ""), " "), ", ")
		for i, name := range names {
			listed = append(listed, name[1])
			if len(cells) == len(names) {
				defaults[name[1]] = cells[i]
			}
		}
	}
	var flags []string
	told := 0
	inUsage := regexp.MustCompile(`\(default ([^;)]+)`)
	command(&process.Options{}, os.LookupEnv).Flags().VisitAll(func(f *pflag.Flag) {
		flags = append(flags, f.Name)
		want := f.DefValue
		if m := inUsage.FindStringSubmatch(f.Usage); m != nil {
			want = m[1]
		} else if slices.Contains([]string{"", "0", "0s", "false", "[]"}, want) {
			return
		}
		if told++; defaults[f.Name] != want {
			t.Errorf("the docs say that --%s is %q by default, and it is %q", f.Name, defaults[f.Name], want)
		}
	})
	if told < 10 {
		t.Errorf("%d flags have a default: the test sees nothing", told)
	}
	slices.Sort(listed)
	slices.Sort(flags)
	if !slices.Equal(listed, flags) {
		t.Errorf("the docs list %v, and there are %v", listed, flags)
	}
}
