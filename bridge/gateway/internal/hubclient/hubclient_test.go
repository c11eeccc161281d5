//go:build !js

package hubclient

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
)

// A list is asked for also while the hub has been sent as many requests as it takes, of which none may end for long.
func TestAListWaitsForNoOtherRequest(t *testing.T) {
	s := &Session{out: mcpconn.NewOutbox(), heard: Heard{Sent: func([]byte) {}}, waiting: map[string]func(Reply){}}
	for range maxAsked + 1 {
		s.Request("tools/call", nil, func(Reply) {})
	}
	asked := make(chan string, 1)
	go func() {
		var text []byte
		for range maxAsked + 1 {
			text, _ = s.out.Next(t.Context())
		}
		asked <- string(text)
		s.receive(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"w%d","result":{"resources":[]}}`, maxAsked+2))
	}()
	result, err := s.List(t.Context(), "resources/list", "c")
	if err != nil || string(result) != `{"resources":[]}` {
		t.Errorf("listed %s, %v", result, err)
	}
	if text := <-asked; !strings.Contains(text, `"method":"resources/list","params":{"cursor":"c"}`) {
		t.Errorf("the hub was sent %s", text)
	}
}

func TestSplit(t *testing.T) {
	m, ok := split([]byte(`{"jsonrpc":"2.0","id":"w1","result":{"_meta":{},"contents":[{"uri":"x","text":"a\"b"}]}}`))
	if !ok || m.id != "w1" || string(m.Contents) != `[{"uri":"x","text":"a\"b"}]` ||
		string(m.Result) != `{"_meta":{},"contents":[{"uri":"x","text":"a\"b"}]}` {
		t.Errorf("%+v %s %s", m, m.Contents, m.Result)
	}
	m, ok = split([]byte(`{"method":"notifications/resources/updated","params":{"uri":"x\u0041"}}`))
	if !ok || m.method != "notifications/resources/updated" || m.uri != "xA" {
		t.Errorf("%+v", m)
	}
	m, ok = split([]byte(`{"id":"w2","error":{"code":-32603,"message":"no","data":{"reason":"timeout"}}}`))
	if !ok || m.Failure == nil || m.Failure.Message != "no" || m.Failure.Data.Reason != "timeout" {
		t.Errorf("%+v", m)
	}
	for _, text := range []string{``, `[]`, `{"id":"w1"`, `{"id":"w1","error":{"data":5,"message":7}}`,
		fmt.Sprintf(`{"id":"w1","result":%s1`, strings.Repeat("[", 100))} {
		split([]byte(text)) // must not panic
	}
}
