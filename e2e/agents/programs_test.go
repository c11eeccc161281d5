package agents

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A program is an agent, or a library for writing agents: how to start it, and with which files in
// its home.
type program struct {
	name   string
	client string   // its name for pagewire config; "" if files has the gateway's entry
	needs  string   // a file that exists if the program is installed
	from   []string // the package.json files that name its versions
	// theirs is the title of a program with its own terms of use. It runs if it is on the PATH;
	// nothing installs it here.
	theirs  string
	files   map[string]string
	env     []string
	command []string
	dir     string // below its home; it is started there
	// search is a program's call that gives its model the tools that are hidden at first.
	search []step
}

const prompt = "Buy what is in the cart."

// dir returns the absolute path of a name in this directory: programs run in their own homes.
func dir(t *testing.T, name string) string {
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// programs returns all programs, for a model at a URL and a gateway's command line.
func programs(t *testing.T, url string, gateway []string) []program {
	command, args := encode(gateway[0]), encode(gateway[1:])
	all := encode(gateway)
	bin := dir(t, "programs/node_modules/.bin")
	server := `{"mcpServers":{"pagewire":{"command":` + command + `,"args":` + args + `}}}`
	library := func(name string, packages ...string) program {
		var from []string
		for _, name := range packages {
			from = append(from, dir(t, "libraries/node_modules/"+name+"/package.json"))
		}
		return program{
			name: name, from: from, needs: dir(t, "libraries/node_modules/.package-lock.json"),
			env: []string{"MODEL=" + url + "/v1", "OPENAI_BASE_URL=" + url + "/v1",
				"OPENAI_API_KEY=fake",
				"GATEWAY=" + all, "PROMPT=" + prompt, "OPENAI_AGENTS_DISABLE_TRACING=1",
				"MASTRA_TELEMETRY_DISABLED=1"},
			command: []string{"node", dir(t, "libraries/"+name+".mjs")},
		}
	}
	theirs := func(name, title string, env []string, arguments ...string) program {
		path, _ := exec.LookPath(name)
		return program{
			name: name, theirs: title, needs: path, env: env,
			command: append([]string{path}, arguments...),
			files:   map[string]string{"mcp.json": server},
		}
	}
	return []program{
		{
			name: "gemini-cli", client: "gemini-cli",
			from:  []string{dir(t, "gemini/node_modules/@google/gemini-cli/package.json")},
			needs: dir(t, "gemini/node_modules/.bin/gemini"),
			files: map[string]string{
				".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`},
			env: []string{"GEMINI_API_KEY=fake", "GOOGLE_GEMINI_BASE_URL=" + url,
				"GEMINI_TELEMETRY_ENABLED=false",
				"GEMINI_CLI_TRUST_WORKSPACE=true"},
			command: []string{dir(t, "gemini/node_modules/.bin/gemini"), "-p", prompt, "-m",
				"gemini-2.5-flash",
				"--approval-mode", "yolo"},
		},
		{
			name: "codex", client: "codex",
			from:  []string{dir(t, "programs/node_modules/@openai/codex/package.json")},
			needs: bin + "/codex",
			files: map[string]string{".codex/config.toml": "model = \"scripted\"\nmodel_provider = " +
				"\"test\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n" +
				"[analytics]\nenabled = false\n" +
				"[model_providers.test]\nname = \"test\"\nbase_url = " + encode(url+"/v1") +
				"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\nrequest_max_retries = 0\n"},
			env: []string{"OPENAI_API_KEY=sk-fake"},
			command: []string{bin + "/codex", "exec", "--skip-git-repo-check",
				"--dangerously-bypass-approvals-and-sandbox", prompt},
		},
		{
			name: "opencode", client: "opencode",
			from: []string{dir(t, "programs/node_modules/opencode-ai/package.json")}, needs: bin +
				"/opencode",
			files: map[string]string{
				"opencode.json": `{"model":"test/scripted","small_model":"test/scripted","autoupdate":false,"share":"disabled","provider":{"test":{"npm":"@ai-sdk/anthropic","options":{"baseURL":` +
					encode(url+"/v1") +
					`,"apiKey":"fake"},"models":{"scripted":{"name":"scripted"}}}}}`},
			env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
				"OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
			command: []string{bin + "/opencode", "run", prompt},
		},
		{
			name: "qwen-code", client: "qwen-code",
			from:  []string{dir(t, "programs/node_modules/@qwen-code/qwen-code/package.json")},
			needs: bin + "/qwen",
			files: map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}},"privacy":{"usageStatisticsEnabled":false},"memory":{"enableManagedAutoMemory":false}}`},
			search: []step{{tool: "tool_search",
				args: map[string]any{"query": "select:mcp__pagewire__read_page_resource," +
					"mcp__pagewire__shipping_costs,mcp__pagewire__checkout"}}},
			env: []string{"OPENAI_API_KEY=sk-fake", "OPENAI_BASE_URL=" + url + "/v1",
				"OPENAI_MODEL=scripted"},
			command: []string{bin + "/qwen", "-p", prompt, "--approval-mode", "yolo"},
		},
		{
			name:  "continue",
			from:  []string{dir(t, "programs/node_modules/@continuedev/cli/package.json")},
			needs: bin + "/cn",
			files: map[string]string{"config.yaml": "name: test\nversion: 0.0.1\nschema: v1\nmodels:\n  - name: " +
				"scripted\n    provider: openai\n    model: scripted\n    apiKey: fake\n    apiBase: " +
				encode(url+"/v1") +
				"\n    useResponsesApi: false\n    roles: [chat]\n    capabilities: " +
				"[tool_use]\nmcpServers:\n  - name: pagewire\n    command: " + command +
				"\n    args: " + args + "\n"},
			env:     []string{"CONTINUE_TELEMETRY_ENABLED=0"},
			command: []string{bin + "/cn", "-p", prompt, "--config", "config.yaml", "--auto"},
		},
		{
			name: "cline", from: []string{dir(t, "programs/node_modules/cline/package.json")},
			needs: bin + "/cline",
			files: map[string]string{".cline/data/settings/cline_mcp_settings.json": server},
			env:   []string{"CLINE_TELEMETRY_DISABLED=1", "CLINE_NO_AUTO_UPDATE=1"},
			command: []string{"sh", "-c",
				`"$0" auth -p openai-compatible -k fake -m scripted -b "$1" && "$0" --auto-approve true "$2"`,
				bin + "/cline", url + "/v1", prompt},
		},
		theirs("claude", "Claude Code",
			[]string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=sk-ant-fake",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
				"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=false"},
			"-p", prompt, "--mcp-config", "mcp.json", "--strict-mcp-config", "--allowedTools",
			"mcp__pagewire"),
		theirs("copilot", "GitHub Copilot CLI",
			[]string{"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false",
				"COPILOT_PROVIDER_BASE_URL=" + url + "/v1", "COPILOT_PROVIDER_API_KEY=fake",
				"COPILOT_MODEL=gpt-4.1"},
			"-p", prompt, "--allow-all-tools", "--disable-builtin-mcps", "--additional-mcp-config",
			"@mcp.json"),
		library("ai-sdk", "ai", "@ai-sdk/mcp"),
		library("openai-agents", "@openai/agents"),
		library("mastra", "@mastra/core", "@mastra/mcp"),
		library("langchain", "langchain", "@langchain/mcp-adapters"),
	}
}

func (p program) install(t *testing.T, home string) {
	t.Helper()
	for name, text := range p.files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (p program) run(t *testing.T, home string, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Patience)
	defer cancel()
	cmd := testcmd.CommandContext(ctx, p.command[0], args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = p.environment(home), filepath.Join(home, p.dir), 5*time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	t.Cleanup(func() { endAll(home) })
	return cmd.CombinedOutput()
}

// environment has nothing of this process but the PATH, where node is, and SHELL.
func (p program) environment(home string) []string {
	env := append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + home,
		"TERM=dumb", "NO_COLOR=1",
		"CI=1"}, p.env...)
	return append(env, "no_proxy=127.0.0.1", "NO_PROXY=127.0.0.1", "SHELL="+
		strings.TrimSpace(os.Getenv("SHELL")))
}

func (p program) version(t *testing.T) string {
	t.Helper()
	if p.theirs != "" {
		said, err := testcmd.Command(p.needs, "--version").Output()
		if err != nil {
			t.Fatal(err)
		}
		return p.theirs + " " + strings.TrimSpace(string(said))
	}
	var all []string
	for _, file := range p.from {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var pack struct{ Name, Version string }
		if err := json.Unmarshal(text, &pack); err != nil {
			t.Fatal(err)
		}
		all = append(all, pack.Name+" "+pack.Version)
	}
	return strings.Join(all, ", ")
}
