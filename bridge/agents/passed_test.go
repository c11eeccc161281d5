package agents

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Another gateway's stream breaks at each byte. The client gets an answer, or its connection fails.
func TestPassedStreamThatBreaks(t *testing.T) {
	const request = `{"jsonrpc":"2.0","id":"r","method":"tools/call"}`
	event := func(message string) string { return eventHead + message + eventTail }
	before := ": keepalive\n\n" + event(`{"jsonrpc":"2.0","method":"notifications/progress"}`) + ": keepalive\n\n"
	all := before + event(`{"jsonrpc":"2.0","id":"r","result":{"text":"a\\n\\nb"}}`) + ": keepalive\n\n"
	broken := errors.New("broken")
	for name, pieces := range map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
		"with the error": iotest.DataErrReader,
	} {
		for cut := range len(all) + 1 {
			text := all[:cut]
			from := io.NopCloser(pieces(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))))
			got, err := io.ReadAll(NewPassed([]byte(request)).Stream(from, "It broke", "broke_off"))
			rest, ok := strings.CutPrefix(string(got), text)
			answered := err == nil && rest == event(
				`{"jsonrpc":"2.0","id":"r","error":{"code":-32603,"message":"It broke","data":{"reason":"broke_off"}}}`)
			ends := errors.Is(err, broken) && rest == ""
			between := cut == 0 || strings.HasSuffix(text, "\n\n")
			if !ok || answered != (between && cut <= len(before)) || answered == ends {
				t.Errorf("%s, cut at %d: %q, %v", name, cut, rest, err)
			}
			// A stream that ends without an error is not changed.
			from = io.NopCloser(pieces(strings.NewReader(text)))
			got, err = io.ReadAll(NewPassed([]byte(request)).Stream(from, "", ""))
			if string(got) != text || err != nil {
				t.Errorf("%s, ends at %d: %q, %v", name, cut, got, err)
			}
		}
	}
	// The stream for a body without a request id is not changed.
	for _, request := range []string{"", "[" + request + "]", `{"jsonrpc":"2.0","method":"x"}`, `{"id":{},"method":"x"}`} {
		from := io.NopCloser(bytes.NewReader(nil))
		if NewPassed([]byte(request)).Stream(from, "", "") != from {
			t.Errorf("%s has an answer", request)
		}
	}
}
