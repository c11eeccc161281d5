package agents

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/browsertest"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/js/build/commands"
)

// A coding agent has only the skill add-live-state, in an app without Pagewire. Its model takes
// commands and code from the skill's text as that reaches it, and inserts the app's own state. It
// then makes the checks that the skill names: they show the state of the app, which runs in a
// browser.
func TestSkillAlone(t *testing.T) {
	home := testkit.ShortDir(t)
	app, hub := filepath.Join(home, "app"), testkit.Addr(t)
	files := map[string]string{
		"package.json": `{"name":"a-shop","version":"1.0.0","private":true}`,
		"index.html": `<!doctype html><title>A shop</title><button>Milk</button><script type="importmap">
			{"imports": {"pagewire": "/node_modules/pagewire/pagewire.mjs"}}</script><script type="module" src="cart.js"></script>`,
		"cart.js": `const cart = { items: ["tea"] }; document.querySelector("button").onclick = () => cart.items.push("milk");`,
		".npmrc": "registry=" + registry(t).URL +
			"/\naudit=false\nfund=false\nupdate-notifier=false\n",
	}
	for name, text := range files {
		if err := writeFile(filepath.Join(app, name), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(app, ".agents/skills/add-live-state"),
		os.DirFS("../../.agents/skills/add-live-state")); err != nil {
		t.Fatal(err)
	}
	gateway := testcmd.Command(dir(t, "../../bin/pagewire"), "serve", "--hub", hub)
	gateway.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	gateway.Stderr = testkit.LogOf(t, "serve")
	testkit.Pipes(t, gateway)
	server := httptest.NewServer(http.FileServer(http.Dir(app)))
	t.Cleanup(server.Close)
	page, closePage, err := browsertest.Launch(t.Context(), browsertest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closePage)

	ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
	defer cancel()
	uri := server.URL + "/state/cart"
	skill := ""
	run := func(command string, before func()) step {
		return step{tool: "run_shell_command", before: before, with: func(string) map[string]any {
			if !strings.Contains(skill, "`"+command) {
				t.Errorf("the skill as it reaches the model does not say %s", command)
			}
			command = strings.ReplaceAll(command, "URI", uri)
			if strings.HasPrefix(command, "npx") {
				command += " --hub " + hub
			}
			return object{"command": command}
		}}
	}
	install := run("npm install pagewire", nil)
	command := install.with
	install.with = func(body string) map[string]any {
		skill = strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\u003e`, ">").Replace(body)
		return command(body)
	}
	m := newModel(t,
		step{tool: "activate_skill", args: object{"name": "add-live-state"}},
		install,
		step{tool: "write_file", with: func(string) map[string]any {
			blocks := regexp.MustCompile("(?s)```js\n(.*?)```").FindAllStringSubmatch(skill, -1)
			if len(blocks) < 3 {
				t.Errorf("the model has %d blocks of code: %s", len(blocks), skill)
				return object{}
			}
			offer, notify,
				_ := strings.Cut(blocks[1][1], "// after each change, as often as it happens:")
			connect := strings.ReplaceAll(blocks[2][1], "127.0.0.1:7433", hub)
			return object{"file_path": filepath.Join(app, "cart.js"),
				"content": "const cart = { items: [\"tea\"] };\n" + offer +
					connect +
					"document.querySelector(\"button\").onclick = () => {\ncart.items.push(\"milk\");" + notify + "};\n"}
		}},
		run("npx pagewire ls", func() {
			if err := chromedp.Do(page, chromedp.Navigate(server.URL)); err != nil {
				t.Error(err)
			}
			for listed := ""; ctx.Err() == nil &&
				!strings.Contains(listed, uri); time.Sleep(10 * time.Millisecond) {
				ls := testcmd.CommandContext(ctx, gateway.Path, "ls", "--hub", hub)
				ls.Env = gateway.Env
				out, _ := ls.Output() // fails until the daemon runs
				listed = string(out)
			}
		}),
		run("npx pagewire read URI", nil),
		run("npx pagewire watch URI --count 1", func() {
			if _, err := chromedp.Run(page, chromedp.Evaluate[int](
				`setInterval(() => document.querySelector("button").click(), 100)`)); err != nil {
				t.Error(err)
			}
		}),
		step{say: "DONE"})
	p := programNamed(t, "gemini-cli", m.URL, []string{"none"})
	p.install(t, home)
	p.dir = "app"
	said, err := p.run(t, home, p.command[1:]...)
	last := strings.ReplaceAll(m.last(), `\`, "")
	for what, want := range map[string]string{
		"ls lists the resource": uri + "  application/json ",
		"read prints the state": `Output: {"items":["tea"]}`,
		"watch prints a change": `-{"items":["tea"`,
	} {
		if !strings.Contains(last, want) {
			t.Errorf("%s: no %q", what, want)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("it ends with %v: %.2000s\nthe last request: %s\nothers: %v", err, said,
			last[max(0, len(last)-4000):], m.other)
	}
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o700)
}

// registry serves the build's package, and its program for this machine, as an npm registry.
func registry(t *testing.T) *httptest.Server {
	t.Helper()
	var its struct{ Version string }
	text, err := os.ReadFile("../../dist/npm/package.json")
	if err != nil {
		t.Fatal(err)
	}
	decode(t, text, &its)
	program := t.TempDir()
	binary, err := os.ReadFile("../../bin/pagewire")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"bin/pagewire": string(binary),
		"package.json": encode(object{"name": commands.Host.Package(), "version": its.Version})} {
		if err := writeFile(filepath.Join(program, name), text); err != nil {
			t.Fatal(err)
		}
	}
	answers := map[string][]byte{} // by path; npm escapes the slash of a name in it
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := answers[r.URL.Path]; answer != nil {
			_, _ = w.Write(answer)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	for name, from := range map[string]string{"pagewire": dir(t, "../../dist/npm"), commands.Host.Package(): program} {
		pack := testcmd.Command("npm", "pack", "--json", "--pack-destination", t.TempDir())
		pack.Dir = from
		out, err := pack.Output()
		var packed []struct{ Filename string }
		if err != nil || json.Unmarshal(out, &packed) != nil || len(packed) != 1 {
			t.Fatalf("npm pack of %s: %v: %s", name, err, out)
		}
		archive, err := os.ReadFile(filepath.Join(pack.Args[4], packed[0].Filename))
		manifest, manifestErr := os.ReadFile(filepath.Join(from, "package.json"))
		if err != nil || manifestErr != nil {
			t.Fatal(err, manifestErr)
		}
		var version map[string]any
		decode(t, manifest, &version)
		sum := sha512.Sum512(archive)
		version["dist"] = object{"tarball": server.URL + "/archive/" + packed[0].Filename,
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
		answers["/"+name] = []byte(encode(object{"name": name, "dist-tags": object{"latest": its.Version},
			"versions": object{its.Version: version}}))
		answers["/archive/"+packed[0].Filename] = archive
	}
	return server
}
