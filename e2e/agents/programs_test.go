package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program is an agent, or a library with which one is written: how it is started, with what files in its home.
type program struct {
	name    string
	version string // where it is in e2e/agents
	needs   string // a file that is there when it is installed
	files   map[string]string
	env     []string
	command []string
}

const prompt = "Buy what is in the cart."

// dir is a directory of this one, by its whole path: programs run in a home of their own.
func dir(t *testing.T, name string) string {
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// programs are all, for a model at a URL and a gateway that is started by a command line.
func programs(t *testing.T, url string, gateway []string) []program {
	command, args := encode(gateway[0]), encode(gateway[1:])
	all := encode(gateway)
	bin := dir(t, "programs/node_modules/.bin")
	server := `{"mcpServers":{"pagewire":{"command":` + command + `,"args":` + args + `}}}`
	library := func(name string) program {
		return program{
			name: name, needs: dir(t, "libraries/node_modules/.package-lock.json"),
			env:     []string{"MODEL=" + url + "/v1", "GATEWAY=" + all, "PROMPT=" + prompt, "OPENAI_AGENTS_DISABLE_TRACING=1", "MASTRA_TELEMETRY_DISABLED=1"},
			command: []string{"node", dir(t, "libraries/"+name+".mjs")},
		}
	}
	return []program{
		{
			name: "gemini-cli", needs: dir(t, "gemini/node_modules/.bin/gemini"),
			files:   map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},` + server[1:]},
			env:     []string{"GEMINI_API_KEY=fake", "GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_TELEMETRY_ENABLED=false", "GEMINI_CLI_TRUST_WORKSPACE=true"},
			command: []string{dir(t, "gemini/node_modules/.bin/gemini"), "-p", prompt, "--approval-mode", "yolo"},
		},
		{
			name: "codex", needs: bin + "/codex",
			files: map[string]string{".codex/config.toml": "model = \"scripted\"\nmodel_provider = \"test\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n" +
				"[analytics]\nenabled = false\n" +
				"[model_providers.test]\nname = \"test\"\nbase_url = " + encode(url+"/v1") + "\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\nrequest_max_retries = 0\n" +
				"[mcp_servers.pagewire]\ncommand = " + command + "\nargs = " + args + "\n"},
			env:     []string{"OPENAI_API_KEY=sk-fake"},
			command: []string{bin + "/codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt},
		},
		{
			name: "opencode", needs: bin + "/opencode",
			files: map[string]string{"opencode.json": `{"model":"test/scripted","small_model":"test/scripted","autoupdate":false,"share":"disabled","provider":{"test":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":` +
				encode(url+"/v1") + `,"apiKey":"fake"},"models":{"scripted":{"name":"scripted"}}}},"mcp":{"pagewire":{"type":"local","enabled":true,"command":` + all + `}}}`},
			env:     []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
			command: []string{bin + "/opencode", "run", prompt},
		},
		{
			name: "continue", needs: bin + "/cn",
			files: map[string]string{"config.yaml": "name: test\nversion: 0.0.1\nschema: v1\nmodels:\n  - name: scripted\n    provider: openai\n    model: scripted\n    apiKey: fake\n    apiBase: " +
				encode(url+"/v1") + "\n    useResponsesApi: false\n    roles: [chat]\n    capabilities: [tool_use]\nmcpServers:\n  - name: pagewire\n    command: " + command + "\n    args: " + args + "\n"},
			env:     []string{"CONTINUE_TELEMETRY_ENABLED=0"},
			command: []string{bin + "/cn", "-p", prompt, "--config", "config.yaml", "--auto"},
		},
		library("ai-sdk"), library("openai-agents"), library("mastra"), library("langchain"),
	}
}

// install puts a program's files into a home, and says how it is started: with nothing of our environment but where node is.
func (p program) install(t *testing.T, home string) (env []string) {
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
	env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + home, "TERM=dumb", "NO_COLOR=1", "CI=1"}, p.env...)
	return append(env, "no_proxy=127.0.0.1", "NO_PROXY=127.0.0.1", "SHELL="+strings.TrimSpace(os.Getenv("SHELL")))
}
