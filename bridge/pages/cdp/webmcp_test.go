package cdp

import (
	"io"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/webmcp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A scripted connection is the test's: no real browser lets a test decide when it answers.
type scripted struct{ says, heard chan string }

func (c scripted) Next() (io.Reader, error) {
	text, ok := <-c.says
	if !ok {
		return nil, io.EOF
	}
	return strings.NewReader(text), nil
}

func (c scripted) Write(m []byte) error { c.heard <- string(m); return nil }

func (c scripted) Close() error { return nil }

// A document may go between a tool's call and the browser's answer that it has begun: the caller gets an error.
func TestToolCallOfADocumentThatHasGone(t *testing.T) {
	c := scripted{make(chan string), make(chan string, 9)}
	l := newLink(c)
	ended := make(chan error, 1)
	go l.write()
	go func() { ended <- l.read(func(_ *message, answered func()) { answered() }) }()
	b := &attachment{link: l}
	tools := &webmcpTools{
		d:           &document{s: &session{b: b, id: "S"}, b: b, frameID: "F"},
		invocations: map[*invocation]bool{},
	}
	results := make(chan string, 2)
	tools.RunTool("say", []byte("{}"), func() {}, func(result []byte, _ bool) { results <- string(result) })
	testkit.Receive(t, "the page is asked to react", c.heard)
	c.says <- `{"id":1,"result":{"result":{"type":"undefined"}},"sessionId":"S"}`
	testkit.Receive(t, "the browser is asked", c.heard)
	tools.close()
	c.says <- `{"id":2,"result":{"invocationId":"I"},"sessionId":"S"}`
	if got := testkit.Receive(t, "the call ends", results); !strings.Contains(got, pageHasGone) {
		t.Errorf("it gives %s", got)
	}
	heard := testkit.Receive(t, "the browser is told", c.heard)
	if !strings.Contains(heard, "WebMCP.cancelInvocation") || !strings.Contains(heard, `"I"`) {
		t.Errorf("the browser hears %s", heard)
	}
	close(c.says)
	testkit.Receive(t, "the link ends", ended)
	if len(results) > 0 {
		t.Errorf("it ends once more: %s", <-results)
	}
}

// The gateway passes on the browser's annotations of a tool, for a page without Pagewire.
func TestHintsOfTheBrowsersTools(t *testing.T) {
	for given, want := range map[string]string{
		"":                                      "",
		`,"annotations":{"readOnly":true}`:      `"readOnlyHint":true`,
		`,"annotations":{"consequential":true}`: `"consequentialHint":true`,
		`,"annotations":{"untrustedContent":true}`:           `"untrustedContentHint":true`,
		`,"annotations":{"debugging":true}`:                  `"debugging":true`,
		`,"annotations":{"autosubmit":true}`:                 `"consequentialHint":true`,
		`,"annotations":{"autosubmit":true,"readOnly":true}`: `"readOnlyHint":true`,
	} {
		var tool webmcp.Tool
		if err := jsonv2.Unmarshal([]byte(`{"name":"do","frameId":"F","inputSchema":{}`+given+`}`), &tool, decodeOptions); err != nil {
			t.Fatal(given, err)
		}
		n := &webmcpTools{d: &document{b: &attachment{}}}
		n.offer(map[string]*webmcp.Tool{"do": &tool})
		if got := strings.Count(string(n.tools[0].JSON), "true"); got != min(len(want), 1) ||
			!strings.Contains(string(n.tools[0].JSON), want) {
			t.Errorf("%s: %s, want %s", given, n.tools[0].JSON, want)
		}
	}
}
