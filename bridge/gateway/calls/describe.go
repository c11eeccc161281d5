package calls

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The names of the tools.
const (
	List = "list_page_resources"
	Read = "read_page_resource"
	Wait = "wait_for_page_update"
	// Changes is for hooks that are tool calls.
	Changes = "page_changes"
)

// Described are the descriptions of the tools. Some clients first show a model only the names, and
// some models see no instructions, so each name and description stands alone. All results are text.
var Described = []*mcp.Tool{
	{
		Name: List,
		Description: "List the live state of the web pages that are open in the user's browser (such as a cart, a " +
			"document, a form): " +
			"URI, title, type and tab of each resource. Read one with " + Read + ".",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"contains":{"type":"string","description":"Only resources whose URI, title or description contains this text"},` +
			`"tab":{"type":"integer","minimum":1,"description":"Only resources of this tab"}},"additionalProperties":false}`),
		Annotations: readOnly("List page resources"),
	},
	{
		Name: Read,
		Description: "Read what an open web page shows now: the current state of one of its live resources. The " +
			"first line gives a revision. " +
			"With that as since only what has changed comes back, as a JSON patch or a diff. Long texts come in pages.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"uri":{"type":"string","description":"As ` + List + ` gives it"},` +
			`"since":{"type":"integer","minimum":0,"description":"A revision whose contents you still have: only the difference is given"},` +
			`"pointer":{"type":"string","description":"JSON Pointer to a part, such as /items/0"},` +
			`"lines":{"type":"string","description":"Lines of a text, such as 10-20"},` +
			`"cursor":{"type":"string","description":"Where to go on in a long text, as the page before says"},` +
			`"max_chars":{"type":"integer","minimum":2000,"maximum":100000,"description":"Longest result (default 8000)"}` +
			`},"required":["uri"],"additionalProperties":false}`),
		Annotations: readOnly("Read a page resource"),
	},
	{
		Name: Wait,
		Description: "Wait until live state of an open web page changes, and get what it is then: instead of reading " +
			"it again and again. " +
			"Returns at once if it has changed since you read it.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"uris":{"type":"array","items":{"type":"string"},"maxItems":50,"description":"Default: all that you have read"},` +
			`"since":{"type":"integer","minimum":0,"description":"The last revision that you were given, if you still have what you read: then only the difference is given"},` +
			`"timeout_ms":{"type":"integer","minimum":0,"maximum":25000,"description":"How long to wait at most (default 20000)"}},"additionalProperties":false}`),
		Annotations: readOnly("Wait for a page to change"),
	},
	{
		Name: Changes,
		Description: "For hooks of type mcp_tool: what has changed in the user's open pages since the agent was told " +
			"last, as the JSON that a hook prints, {} for nothing. To ask by yourself use " +
			Wait + ".",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"hook":{"type":"string","enum":["claude-code","codex","gemini-cli","copilot"],"description":"Whose hook (default claude-code)"},` +
			`"event":{"type":"string","description":"The hook's event (default that of a prompt)"},` +
			`"inline":{"type":"array","items":{"type":"string"},"maxItems":50,"description":"Origins whose contents are told, not names alone"},` +
			`"uris":{"type":"array","items":{"type":"string"},"maxItems":50,"description":"Resources whose contents are told"},` +
			`"forget":{"type":"boolean","description":"Forget what the agent has seen: its conversation was cleared or compacted"}},"additionalProperties":false}`),
		Annotations: readOnly("What has changed in pages"),
	},
}

// readOnly returns the annotations of a tool that changes nothing.
func readOnly(title string) *mcp.ToolAnnotations {
	open := true
	return &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, OpenWorldHint: &open}
}
