package agents

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// Over HTTP, in both eras, the answer to events/stream is a stream until the client leaves. It counts as a listen, and
// not as a request. Above the bound it is refused with the error of MCP Events.
func TestEventStreamsOverHTTP(t *testing.T) {
	for era := range versions {
		t.Run(era, func(t *testing.T) {
			s := serveHTTP(t, HTTPOptions{Shares: Shares{Listens: 3, Requests: 1}})
			arguments := `"name":"page.resource.updated","arguments":{"uri":"` + origin + `/doc"}`
			ask := func(id, method string) *reply { return s.ask(call(id, method, arguments)) }
			if era == "legacy" {
				session := s.begin()
				ask = func(id, method string) *reply { return s.do("POST", legacyCall(id, method, arguments), session) }
			}
			open := func(id string) *reply {
				r := ask(id, "events/stream")
				if m := r.message(); m.Method != "notifications/events/active" || m.subscription() != id {
					t.Fatalf("a stream begins with %+v %+v", m, m.Error)
				}
				if kind := r.Header.Get("Content-Type"); kind != "text/event-stream" {
					t.Errorf("it is %s", kind)
				}
				return r
			}
			one, two, three := open(`"a"`), open(`"b"`), open(`7`)
			ask("8", "events/poll").want(200, 0)
			full := ask("9", "events/stream")
			if m := full.want(http.StatusTooManyRequests, -32013); m.Error == nil || m.Error.Data["max"] != 3.0 ||
				!strings.HasPrefix(m.Error.Message, "ResourceExhausted: ") || full.Header.Get("Retry-After") == "" {
				t.Errorf("the fourth is answered %+v", m)
			}
			s.Set(origin+"/doc", "two")
			for id, r := range map[string]*reply{`"a"`: one, `"b"`: two, `7`: three} {
				if m := r.message(); m.Method != "notifications/events/event" || m.subscription() != id {
					t.Errorf("%s is told %+v", id, m)
				}
			}
			two.cancel()
			testkit.Eventually(t, "the stream that its client left is gone", func() bool {
				return s.g.Snapshot().Stats.Streams == 2
			})
			testkit.Eventually(t, "its place is free", func() bool { return s.h.shares[ofListens].Held() == 2 })
			open(`"b"`).cancel()
			one.cancel()
			three.cancel()
			testkit.Eventually(t, "all are gone", func() bool { return s.g.Snapshot().Stats.Streams == 0 })
		})
	}
}

// In a legacy session without a GET stream, an events/stream has its own notifications and no others.
func TestEventStreamsOfALegacySession(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	session := s.begin()
	s.do("POST", legacyCall("1", "resources/subscribe", `"uri":"`+origin+`/doc"`), session).want(200, 0)
	r := s.do("POST", legacyCall("2", "events/stream", `"name":"page.resource.updated"`), session)
	r.message()
	for _, text := range []string{"two", "three"} {
		s.Set(origin+"/doc", text)
		if m := r.message(); m.Method != "notifications/events/event" {
			t.Errorf("told %+v", m)
		}
	}
	s.do("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, session)
	r.close()
	r = s.do("POST", legacyCall("2", "events/stream", `"name":"page.resource.updated"`), session)
	r.message()
	s.do("DELETE", "", session)
	if m := r.message(); string(m.ID) != "2" || m.Result == nil || m.Result.ResultType != "" {
		t.Errorf("the end of the session is %+v", m)
	}
	r.close()
}

// An events/stream gets a notification and a result when its client's right ends, at the deadline of its request.
func TestEventStreamWhoseTokenEnds(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	s.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 200*time.Millisecond)
		defer cancel()
		s.h.ServeHTTP(w, r.WithContext(ctx))
	})
	r := s.ask(call("1", "events/stream", `"name":"page.resource.updated"`))
	r.message()
	if m := r.message(); m.Method != "notifications/events/terminated" {
		t.Errorf("told %+v", m)
	}
	if m := r.message(); string(m.ID) != "1" || m.Result == nil || m.Result.ResultType != "complete" {
		t.Errorf("it ends with %+v", m)
	}
	r.close()
}

func TestWebhooksOfARequest(t *testing.T) {
	asked := 0
	s := serveHTTP(t, HTTPOptions{Webhooks: func(r *http.Request) events.Webhooks {
		asked++
		return nil
	}})
	session := s.begin()
	s.do("POST", legacyCall("1", "events/subscribe", `"name":"page.opened"`), session).want(200, -32012)
	s.ask(call("1", "events/subscribe", `"name":"page.opened"`)).want(200, -32012)
	if asked < 2 {
		t.Errorf("asked %d times", asked)
	}
}
