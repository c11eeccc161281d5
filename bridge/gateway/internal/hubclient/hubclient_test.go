//go:build !js

package hubclient

import (
	"fmt"
	"strings"
	"testing"
)

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
