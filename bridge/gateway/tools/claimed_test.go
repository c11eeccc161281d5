package tools

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestClaimed(t *testing.T) {
	const asks = `{"destructiveHint":true,"idempotentHint":false,"readOnlyHint":false}`
	const undone = " The page says that this may not be undone."
	const others = " Its results hold text that the page did not write."
	for given, want := range map[string][3]string{ // annotations, description, hints
		`"x":1`:                               {`null`, "Does it.", `{}`},
		`"annotations":{"readOnlyHint":true}`: {`null`, "Does it. The page says: read-only.", `{}`},
		`"_meta":{"pagewire/hints":{"consequentialHint":true}}`:      {asks, "Does it." + undone, `{"consequentialHint":true}`},
		`"_meta":{"pagewire/hints":{"untrustedContentHint":true}}`:   {`null`, "Does it." + others, `{"untrustedContentHint":true}`},
		`"_meta":{"pagewire/hints":{"debugging":true}}`:              {`null`, "Does it.", `{"debugging":true}`},
		`"annotations":{"destructiveHint":true,"readOnlyHint":true}`: {asks, "Does it. The page says: read-only, destructive.", `{}`},
		`"annotations":{"destructiveHint":false}`:                    {`null`, "Does it. The page says: not destructive.", `{}`},
		`"annotations":{"idempotentHint":true,"openWorldHint":false}`: {`null`,
			"Does it. The page says: idempotent, closed world.", `{}`},
		`"annotations":{"openWorldHint":true}`: {`null`, "Does it.", `{}`},
		`"annotations":{"readOnlyHint":true,"destructiveHint":false},"_meta":{"pagewire/hints":{"consequentialHint":true,"untrustedContentHint":true}}`: {
			asks, "Does it. The page says: read-only, not destructive." + undone + others,
			`{"consequentialHint":true,"untrustedContentHint":true}`},
		// A value that is no boolean makes clients ask more, and not less.
		`"_meta":{"pagewire/hints":{"consequentialHint":"no","untrustedContentHint":0,"debugging":[]}}`: {
			asks, "Does it." + undone + others,
			`{"consequentialHint":true,"untrustedContentHint":true,"debugging":true}`},
		`"_meta":{"pagewire/hints":{"consequentialHint":null,"untrustedContentHint":false,"more":true}}`: {`null`, "Does it.", `{}`},
		`"_meta":{"pagewire/hints":["consequentialHint"]}`:                                               {`null`, "Does it.", `{}`},
	} {
		var tool mcp.Tool
		if err := json.Unmarshal([]byte(`{"name":"do","description":"Does it.",`+given+`}`), &tool); err != nil {
			t.Fatal(given, err)
		}
		hints := HintsOf(&tool)
		shown := Claimed(&tool, hints)
		annotations, _ := json.Marshal(shown.Annotations)
		said, _ := json.Marshal(hints)
		if got := [3]string{string(annotations), shown.Description, string(said)}; got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
	titled := &mcp.Tool{Annotations: &mcp.ToolAnnotations{Title: "Look"}}
	if got := Claimed(titled, Hints{}).Title; got != "Look" {
		t.Errorf("its title is %q", got)
	}
}
